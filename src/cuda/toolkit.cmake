# Enables CUDA where its toolkit is: CMAKE_CUDA_COMPILER says so afterwards. 12.0 is the first whose cudaSetDevice
# initialises the device's context, on which the driver calls rely.
find_package(CUDAToolkit 12.0 QUIET)
if(TARGET CUDA::cudart_static AND CUDAToolkit_NVCC_EXECUTABLE)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  # Turing, Ampere and Hopper as they are; later GPUs compile the last one's PTX when it is loaded.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
  endif()
  if(NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER AND CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  enable_language(CUDA)
  # CMake 3.25 does not know it of the nvcc of a later CUDA.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
endif()
