/* A system-call filter for a process that is about to load code it does not trust.
 *
 * Computing needs memory, threads and the clock. What is refused (EPERM) is what reaches another process, another
 * namespace, the kernel's observation and key stores, memory that outlives or escapes this process' limits, new
 * programs, and changes of the clock or of the filter itself.
 */
#ifndef HB_LOCKDOWN_H
#define HB_LOCKDOWN_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define HB_ARCH AUDIT_ARCH_X86_64
#define HB_X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define HB_ARCH AUDIT_ARCH_AARCH64
#else
#error "the grading runner knows x86_64 and aarch64"
#endif

#define HB_DENY(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((error) & SECCOMP_RET_DATA))
#define HB_ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define HB_LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define HB_NR HB_LOAD(offsetof(struct seccomp_data, nr))
/* Low half of an argument: both architectures are little-endian. */
#define HB_ARG(index) HB_LOAD(offsetof(struct seccomp_data, args) + 8 * (index))
#define HB_REFUSE(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), HB_DENY(EPERM)
/* Unless the loaded word equals `value`, skip the `count` statements that follow. */
#define HB_ONLY_IF(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))

static struct sock_filter hb_filter[] = {
    HB_LOAD(offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HB_ARCH, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    HB_NR,
#ifdef HB_X32_BIT
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, HB_X32_BIT, 0, 1),
    HB_DENY(EPERM),
#endif
    /* other processes and their memory */
    HB_REFUSE(ptrace), HB_REFUSE(process_vm_readv), HB_REFUSE(process_vm_writev), HB_REFUSE(kcmp),
    HB_REFUSE(kill), HB_REFUSE(tkill), HB_REFUSE(rt_sigqueueinfo), HB_REFUSE(rt_tgsigqueueinfo),
#ifdef __NR_pidfd_open
    HB_REFUSE(pidfd_open), HB_REFUSE(pidfd_send_signal),
#endif
#ifdef __NR_pidfd_getfd
    HB_REFUSE(pidfd_getfd),
#endif
#ifdef __NR_process_madvise
    HB_REFUSE(process_madvise),
#endif
    /* new programs and processes */
    HB_REFUSE(execve), HB_REFUSE(execveat),
#ifdef __NR_fork
    HB_REFUSE(fork), HB_REFUSE(vfork),
#endif
    /* namespaces and mounts */
    HB_REFUSE(unshare), HB_REFUSE(setns), HB_REFUSE(mount), HB_REFUSE(umount2), HB_REFUSE(pivot_root),
    HB_REFUSE(chroot), HB_REFUSE(name_to_handle_at), HB_REFUSE(open_by_handle_at),
#ifdef __NR_open_tree
    HB_REFUSE(open_tree), HB_REFUSE(move_mount), HB_REFUSE(fsopen), HB_REFUSE(fsconfig), HB_REFUSE(fsmount),
    HB_REFUSE(fspick),
#endif
#ifdef __NR_mount_setattr
    HB_REFUSE(mount_setattr),
#endif
    /* kernel interfaces with a history of holes, and those that observe or trap */
    HB_REFUSE(userfaultfd), HB_REFUSE(perf_event_open), HB_REFUSE(bpf), HB_REFUSE(seccomp), HB_REFUSE(personality),
    HB_REFUSE(add_key), HB_REFUSE(request_key), HB_REFUSE(keyctl),
#ifdef __NR_io_uring_setup
    HB_REFUSE(io_uring_setup), HB_REFUSE(io_uring_enter), HB_REFUSE(io_uring_register),
#endif
    /* sockets, and memory that no limit of this process counts */
    HB_REFUSE(socket), HB_REFUSE(socketpair), HB_REFUSE(memfd_create), HB_REFUSE(shmget), HB_REFUSE(shmat),
    HB_REFUSE(msgget), HB_REFUSE(semget), HB_REFUSE(mq_open),
#ifdef __NR_memfd_secret
    HB_REFUSE(memfd_secret),
#endif
    /* glibc falls back from clone3 to clone, whose flags a filter can read; only threads may be made */
#ifdef __NR_clone3
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1),
    HB_DENY(ENOSYS),
#endif
    HB_ONLY_IF(__NR_clone, 4),
    HB_ARG(0),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
    HB_ALLOW,
    HB_DENY(EPERM),
    /* shared anonymous memory is not counted by RLIMIT_DATA */
    HB_ONLY_IF(__NR_mmap, 5),
    HB_ARG(3),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, MAP_SHARED | MAP_ANONYMOUS),
    HB_ONLY_IF(MAP_SHARED | MAP_ANONYMOUS, 1),
    HB_DENY(EPERM),
    HB_ALLOW,
    /* a trapped time-stamp counter or a further filter would let the process rewrite its own clock */
    HB_ONLY_IF(__NR_prctl, 7),
    HB_ARG(0),
    HB_ONLY_IF(PR_SET_TSC, 1),
    HB_DENY(EPERM),
    HB_ONLY_IF(PR_SET_SECCOMP, 1),
    HB_DENY(EPERM),
    HB_ONLY_IF(PR_SET_PDEATHSIG, 1),
    HB_DENY(EPERM),
    HB_ALLOW,
};

/* 0, or -1 with errno when the kernel has no system-call filter. Call it while there is one thread. */
static int hb_lockdown(void)
{
    struct sock_fprog program = {.len = sizeof hb_filter / sizeof hb_filter[0], .filter = hb_filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
