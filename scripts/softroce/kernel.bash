# shellcheck shell=bash
# Fetches a distribution kernel without installing it, and makes the guest's initramfs. Sourced by softroce-vm, which
# defines: here (this folder), scratch, die, note.
# shellcheck disable=SC2154

cache_folder() {
    local base=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    [[ -n $base ]] || die "neither HOME nor XDG_CACHE_HOME is set: there is no folder to keep the kernel in" \
        "set XDG_CACHE_HOME to a writable folder"
    printf '%s/gdrbench/kernel' "$base"
}

# The kernel that the distribution's own metapackage stands for, such as 6.1.0-44-amd64. Debian's cloud kernels are no
# choice here: they are built without RDMA.
default_kernel() {
    local metapackage version
    for metapackage in linux-image-amd64 linux-image-generic; do
        version=$(apt-cache show --no-all-versions "$metapackage" 2>/dev/null |
            sed -n 's/^Depends:.*linux-image-\([0-9][^ ,]*\).*/\1/p')
        [[ -z $version ]] || { printf '%s' "${version%%$'\n'*}"; return; }
    done
    die "apt-cache show linux-image-amd64 (Debian) and linux-image-generic (Ubuntu) name no kernel" \
        "run 'apt-get update', or give one with --kernel; unpacked already: $(unpacked_kernels)"
}

unpacked_kernels() {
    local found
    found=$(cd "$(cache_folder)" 2>/dev/null && compgen -G '[0-9]*' | tr '\n' ' ') || true
    printf '%s' "${found:-none}"
}

download() {
    local package=$1 unsandboxed=()
    # As root apt would drop to its own user, which cannot write to a private folder.
    ((EUID != 0)) || unsandboxed=(-o APT::Sandbox::User=root)
    apt-get download -q "${unsandboxed[@]}" "$package" 2>&1
}

# Unpacks into a folder beside the final one and renames it: an interrupted or parallel run leaves no half kernel.
# Drivers of what the guest cannot have: most of the size.
drop_hardware() {
    (cd "$1" && rm -rf sound drivers/{gpu,media,staging,iio,hwmon,usb,scsi,ata,input} drivers/net/{ethernet,wireless})
}

unpack_kernel() {
    local version=$1 folder=$2 unpacking message package packages=("linux-image-$1")
    # Ubuntu splits the modules off.
    for package in "linux-modules-$version" "linux-modules-extra-$version"; do
        ! apt-cache show "$package" >/dev/null 2>&1 || packages+=("$package")
    done
    unpacking=$(mktemp -d -p "$(cache_folder)")
    scratch+=("$unpacking")
    note "fetching ${packages[*]} (once; kept in $folder)"
    for package in "${packages[@]}"; do
        message=$(cd "$unpacking" && download "$package") ||
            die "apt-get download $package: ${message:-no message}" \
                "run 'apt-get update'; kernels on offer: apt-cache search --names-only '^linux-image-[0-9]'; unpacked already: $(unpacked_kernels)"
    done
    for package in "$unpacking"/*.deb; do
        dpkg -x "$package" "$unpacking/tree" || die "dpkg -x ${package##*/} failed" "is the disk of $folder full?"
    done
    # Debian 13 has its modules below usr/lib, depmod and modprobe expect lib.
    [[ -d $unpacking/tree/lib/modules ]] || ln -s usr/lib "$unpacking/tree/lib"
    rm -rf "$unpacking"/*.deb "$unpacking/tree/usr/share"
    drop_hardware "$unpacking/tree/lib/modules/$version/kernel"
    depmod -b "$unpacking/tree" "$version" || die "depmod for $version failed in $unpacking/tree" "is kmod intact?"
    mv -T "$unpacking/tree" "$folder" 2>/dev/null || [[ -d $folder ]] || die "cannot rename $unpacking/tree to $folder" "look at its permissions"
}

# Sets kernel_folder, with boot/vmlinuz-VERSION and lib/modules/VERSION in it.
need_kernel() {
    local version=$1
    kernel_folder=$(cache_folder)/$version
    mkdir -p "$(cache_folder)" || die "cannot create $(cache_folder)" "set XDG_CACHE_HOME to a writable folder"
    [[ -d $kernel_folder ]] || unpack_kernel "$version" "$kernel_folder"
    [[ -r $kernel_folder/boot/vmlinuz-$version ]] ||
        die "$kernel_folder has no boot/vmlinuz-$version" "remove that folder and run again"
}

# In the order of use; each brings its dependencies. rdma_rxe asks for crc32_generic by name at run time only, so no
# dependency shows it, and without it 'rdma link add' fails; newer kernels have it built in under another name.
guest_modules=(virtio_pci 9pnet_virtio 9p overlay virtio_console veth virtio_net crc32_generic ib_uverbs rdma_ucm rdma_rxe)

# Prints each needed module file once, dependencies first. The host's modprobe.d does not concern the guest.
module_files() {
    local version=$1 module listing
    for module in "${guest_modules[@]}"; do
        listing=$(modprobe -C /dev/null -d "$kernel_folder" -S "$version" --show-depends "$module" 2>&1) ||
            { [[ $module == crc32_generic ]] && continue; } ||
            die "the kernel $version has no module $module: $listing" \
                "choose another with --kernel (Debian's cloud kernels have no RDMA)"
        sed -n 's/^insmod \([^ ]*\).*/\1/p' <<<"$listing"
    done | awk '!seen[$0]++'
}

# busybox cannot be relied on to load compressed modules.
copy_module() {
    case $1 in
        *.xz) xz -dc "$1" >"$2" ;;
        *.zst) zstd -qdc "$1" >"$2" ;;
        *) cp "$1" "$2" ;;
    esac
}

archive() {
    (cd "$1" && find . -print0 | cpio --quiet --null -o -H newc -R 0:0)
}

make_initramfs() {
    local version=$1 folder=$2 files file name
    mkdir -p "$folder"/{bin,modules,proc,sys,dev,softroce}
    cp "$(command -v busybox)" "$folder/bin/busybox"
    cp "$here/init" "$folder/init"
    cp "$here/guest" "$folder/softroce/guest"
    chmod 755 "$folder/init"
    files=$(module_files "$version")
    while IFS= read -r file; do
        name=${file##*/}
        name=${name%.xz}
        name=${name%.zst}
        copy_module "$file" "$folder/modules/$name"
        printf '%s\n' "$name"
    done <<<"$files" >"$folder/modules/order"
    archive "$folder"
}
