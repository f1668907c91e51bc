# shellcheck shell=bash
# Starts the virtual machines and talks with them. Sourced by softroce-vm, which defines: work (a private folder), nodes,
# cores, memory, keep_output, kernel_folder, stage, die, check_deadline. Arrays here are indexed by node.
# shellcheck disable=SC2154

machines=() # process ids of QEMU
copiers=()  # process ids that copy a guest's output to ours
from=()     # descriptors: status lines of the guest
to=()       # descriptors: orders to the guest
partial=()  # a status line of which only the beginning has come

# /dev/kvm being there says little: in some nested machines a guest hangs at once, in others only a real kernel does. So
# the trial boots this kernel until it misses its root, which takes a second where KVM works.
choose_accelerator() {
    local version=$1 log=$work/trial
    if [[ -w /dev/kvm ]] && timeout -k 1 4 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
        -machine pc -accel kvm -cpu host -m 256 -kernel "$kernel_folder/boot/vmlinuz-$version" \
        -append "console=ttyS0 quiet panic=-1" -serial "file:$(escaped "$log")" </dev/null >/dev/null 2>&1 &&
        grep -q 'Kernel panic' "$log"; then
        echo kvm
    else
        echo tcg
    fi
}

# QEMU takes a doubled comma for a comma in a value.
escaped() { printf '%s' "${1//,/,,}"; }

machine_arguments() {
    local node=$1 version=$2 accelerator=$3 cpu=max channel card
    # The time stamp counter runs through from the host, so it is as good as the host's; the guest's other clocks are
    # emulated devices, microseconds a reading. On a busy host its timer interrupts may come too late for the kernel's
    # check of them, which would end in a panic.
    local kernel_line="console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable clocksource=tsc mitigations=off no5lvl random.trust_cpu=on"
    [[ $accelerator == tcg ]] || cpu=host
    [[ $accelerator == kvm ]] || accelerator=tcg,thread=multi
    channel=$(escaped "$work/$node")
    # shellcheck disable=SC2054
    arguments=(-nodefaults -no-user-config -display none -no-reboot -machine pc -accel "$accelerator" -cpu "$cpu"
        -smp "$cores" -m "$memory" -kernel "$kernel_folder/boot/vmlinuz-$version" -initrd "$work/initrd.$node"
        -append "$kernel_line"
        -chardev "file,id=console,path=$channel.console" -serial chardev:console
        -chardev "pipe,id=status,path=$channel.status" -serial chardev:status
        -device virtio-serial-pci
        -chardev "file,id=stdout,path=$channel.stdout" -device virtserialport,chardev=stdout,name=stdout
        -chardev "file,id=stderr,path=$channel.stderr" -device virtserialport,chardev=stderr,name=stderr
        -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap
        -device virtio-9p-pci,fsdev=host,mount_tag=host)
    # shellcheck disable=SC2054
    [[ -z $keep_output ]] || arguments+=(
        -fsdev "local,id=output,path=$(escaped "$keep_output"),security_model=none,multidevs=remap"
        -device virtio-9p-pci,fsdev=output,mount_tag=output)
    card=virtio-net-pci
    if [[ -n $numa ]]; then
        # Half of cores and memory each; the second has a host bridge of its own, and the card behind it. Last, or QEMU
        # would put other devices there as well.
        # shellcheck disable=SC2054
        arguments+=(-object "memory-backend-ram,id=first,size=$((memory / 2))M"
            -object "memory-backend-ram,id=second,size=$((memory - memory / 2))M"
            -numa "node,nodeid=0,cpus=0-$((cores / 2 - 1)),memdev=first"
            -numa "node,nodeid=1,cpus=$((cores / 2))-$((cores - 1)),memdev=second"
            -device pxb,id=second_bridge,bus=pci.0,bus_nr=8,numa_node=1)
        card+=,bus=second_bridge,addr=1
    fi
    ((nodes == 1)) || arguments+=(
        -netdev "stream,id=link,server=$( ((node == 0)) && echo on || echo off),addr.type=unix,addr.path=$channel_link"
        -device "$card,netdev=link,host_mtu=4200,mac=52:54:00:77:00:0$((node + 1)),romfile=")
}

open_channels() {
    local node=$1 stream reading writing
    mkfifo "$work/$node.status.in" "$work/$node.status.out"
    # Opened for both directions, so that neither side waits for the other.
    exec {reading}<>"$work/$node.status.out" {writing}<>"$work/$node.status.in"
    from[node]=$reading to[node]=$writing
    partial[node]=
    # In a pair, node 0 only serves: what it writes goes to a file.
    if ((node < nodes - 1)); then return; fi
    for stream in stdout stderr; do mkfifo "$work/$node.$stream"; done
    cat "$work/$node.stdout" &
    copiers+=($!)
    cat "$work/$node.stderr" >&2 &
    copiers+=($!)
}

start_machine() {
    local node=$1 arguments channel_link
    channel_link=$(escaped "$work/link")
    machine_arguments "$@"
    open_channels "$node"
    # The machine must not outlive this script, however it ends.
    setpriv --pdeathsig KILL -- qemu-system-x86_64 "${arguments[@]}" </dev/null >"$work/$node.qemu" 2>&1 &
    machines[node]=$!
}

# Node 1 connects to the socket that node 0 makes.
wait_for_link() {
    local tries=100
    until [[ -S $work/link ]]; do
        if ((tries-- == 0)) || ! kill -0 "${machines[0]}" 2>/dev/null; then machine_ended 0; fi
        sleep 0.1
    done
}

machine_ended() {
    local node=$1 qemu console
    qemu=$(tail -n 5 "$work/$node.qemu")
    console=$(tr -d '\r' 2>/dev/null <"$work/$node.console" | { grep -F -m1 -A9 'Kernel panic' || tail -n 10; }) || true
    die "the machine of node $node ended by itself; last known: $stage"$'\n'"qemu: ${qemu:-no message}"$'\n'"kernel: ${console:-no message}" \
        "more memory (--memory, now $memory MiB), another kernel (--kernel) or SOFTROCE_ACCEL=tcg may help"
}

# Reads one status line of a node into 'line'; false when none is there within half a second.
read_status() {
    local node=$1 chunk=
    if IFS= read -r -t 0.5 -u "${from[node]}" chunk; then
        line=${partial[node]}$chunk
        partial[node]=
    else
        partial[node]+=$chunk
        return 1
    fi
}

order() { printf '%s\n' "$2" >&"${to[$1]}"; }

report_failure() {
    local node=$1 text=$2 log=
    while read_status "$node" && [[ $line != end ]]; do log+=$'\n'"  ${line#log }"; done
    die "in the machine of node $node (after: $stage): $text"$'\n'"last kernel lines:${log:- none}" "$(remedy "$text")"
}

remedy() {
    case $1 in
        *9p*) echo "the 9p share of the host's root failed: see that qemu-system-x86 is the distribution's, and try --kernel" ;;
        *rdma\ link*) echo "the kernel could not make an rxe device: try another --kernel; 'rdma' comes with iproute2" ;;
        *) echo "try another --kernel, more --memory, or SOFTROCE_ACCEL=tcg" ;;
    esac
}

# With nobody left to read the command's output there is nothing to run on for: the status is that of SIGPIPE. A
# copier that ended well has seen the end of its machine.
settle_reader() {
    local status=0
    wait "$1" || status=$?
    case $status in
        0) ;;
        141) exit 141 ;;
        *) die "the command's output cannot be written here (cat: status $status)" "is the disk full?" ;;
    esac
}

check_readers() {
    local pid
    for pid in "${copiers[@]}"; do kill -0 "$pid" 2>/dev/null || settle_reader "$pid"; done
}

# A machine that is gone may have left a last line behind, for the node that is listened to.
check_machines() {
    local node
    for node in "${!machines[@]}"; do
        kill -0 "${machines[node]}" 2>/dev/null || { ((node == $1)) && read_status "$node"; } || machine_ended "$node"
    done
}

# Waits until a node sends a line that begins with one of the words given; leaves it in 'line'.
wait_for() {
    local node=$1 word
    shift
    while true; do
        check_deadline
        line=
        if ! read_status "$node"; then
            check_machines "$node"
            [[ -n $line ]] || { check_readers; continue; }
        fi
        case $line in
            stage\ *) stage=${line#stage } ;;
            fail\ *) report_failure "$node" "${line#fail }" ;;
        esac
        for word in "$@"; do [[ $line != "$word"* ]] || return 0; done
    done
}

# Lets a machine that has said its last word switch itself off, then ends it.
end_machine() {
    local pid=${machines[$1]:-} tries=50
    [[ -n $pid ]] || return 0
    while kill -0 "$pid" 2>/dev/null && ((tries-- > 0)); do sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    unset "machines[$1]"
}
