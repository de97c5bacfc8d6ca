/* System-call filters: one for a process that is about to load code it does not trust, one for a compiler.
 *
 * Computing needs memory, threads and the clock. What is refused (EPERM) is what reaches another process, another
 * namespace, the kernel's observation and key stores, memory that outlives or escapes this process' limits, new
 * programs, and changes of the clock, the limits, the priority or the filter itself. A stopped process must stay
 * stopped: nothing may arrange for a SIGCONT of its own (timers and descriptors that signal). Affinity may be set,
 * since OpenMP runtimes pin their threads: whoever takes more cores is told by its CPU time.
 *
 * A compiler may start programs and read pipes; it gets no network, no namespace and none of the kernel's stores.
 */
#ifndef HB_LOCKDOWN_H
#define HB_LOCKDOWN_H

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HB_ARCH AUDIT_ARCH_X86_64
#define HB_X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define HB_ARCH AUDIT_ARCH_AARCH64
#else
#error "the grading runner knows x86_64 and aarch64"
#endif

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59 /* Linux 5.11 */
#endif

#define HB_DENY(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((error) & SECCOMP_RET_DATA))
#define HB_ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define HB_LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define HB_NR HB_LOAD(offsetof(struct seccomp_data, nr))
/* Halves of an argument: both architectures are little-endian. */
#define HB_ARG(index) HB_LOAD(offsetof(struct seccomp_data, args) + 8 * (index))
#define HB_ARG_HIGH(index) HB_LOAD(offsetof(struct seccomp_data, args) + 8 * (index) + 4)
#define HB_REFUSE(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), HB_DENY(EPERM)
/* Unless the loaded word equals `value`, skip the `count` statements that follow. */
#define HB_ONLY_IF(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
/* Two statements: refuse when the loaded word is `value`. */
#define HB_REFUSE_VALUE(value) HB_ONLY_IF(value, 1), HB_DENY(EPERM)

/* System calls that some kernel headers do not know yet. */
#ifdef __NR_process_madvise
#define HB_REFUSE_PROCESS_MADVISE HB_REFUSE(process_madvise),
#else
#define HB_REFUSE_PROCESS_MADVISE
#endif
#ifdef __NR_pidfd_getfd
#define HB_REFUSE_PIDFD HB_REFUSE(pidfd_open), HB_REFUSE(pidfd_send_signal), HB_REFUSE(pidfd_getfd),
#else
#define HB_REFUSE_PIDFD
#endif
#ifdef __NR_open_tree
#define HB_REFUSE_NEW_MOUNTS \
    HB_REFUSE(open_tree), HB_REFUSE(move_mount), HB_REFUSE(fsopen), HB_REFUSE(fsconfig), HB_REFUSE(fsmount), \
    HB_REFUSE(fspick),
#else
#define HB_REFUSE_NEW_MOUNTS
#endif
#ifdef __NR_mount_setattr
#define HB_REFUSE_MOUNT_SETATTR HB_REFUSE(mount_setattr),
#else
#define HB_REFUSE_MOUNT_SETATTR
#endif
#ifdef __NR_io_uring_setup
#define HB_REFUSE_URING HB_REFUSE(io_uring_setup), HB_REFUSE(io_uring_enter), HB_REFUSE(io_uring_register),
#else
#define HB_REFUSE_URING
#endif
#ifdef __NR_memfd_secret
#define HB_REFUSE_SECRET HB_REFUSE(memfd_secret),
#else
#define HB_REFUSE_SECRET
#endif

/* A foreign architecture's calls never pass. */
#ifdef HB_X32_BIT
#define HB_NO_X32 BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, HB_X32_BIT, 0, 1), HB_DENY(EPERM),
#else
#define HB_NO_X32
#endif
#define HB_OWN_ARCHITECTURE \
    HB_LOAD(offsetof(struct seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HB_ARCH, 1, 0), \
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), HB_NR, HB_NO_X32

/* Refused to compilers and submissions alike: memory of other processes, namespaces and mounts, kernel interfaces
 * with a history of holes, those that observe or trap, the clock. */
#define HB_REFUSED_TO_ALL \
    HB_REFUSE(ptrace), HB_REFUSE(process_vm_readv), HB_REFUSE(process_vm_writev), HB_REFUSE(kcmp), \
    HB_REFUSE_PROCESS_MADVISE HB_REFUSE_PIDFD \
    HB_REFUSE(unshare), HB_REFUSE(setns), HB_REFUSE(mount), HB_REFUSE(umount2), HB_REFUSE(pivot_root), \
    HB_REFUSE(chroot), HB_REFUSE(name_to_handle_at), HB_REFUSE(open_by_handle_at), \
    HB_REFUSE_NEW_MOUNTS HB_REFUSE_MOUNT_SETATTR \
    HB_REFUSE(userfaultfd), HB_REFUSE(perf_event_open), HB_REFUSE(bpf), HB_REFUSE(seccomp), \
    HB_REFUSE(personality), HB_REFUSE(add_key), HB_REFUSE(request_key), HB_REFUSE(keyctl), HB_REFUSE_URING \
    HB_REFUSE(clock_settime), HB_REFUSE(settimeofday), HB_REFUSE(adjtimex), HB_REFUSE(clock_adjtime), \
    HB_REFUSE(shmget), HB_REFUSE(shmat), HB_REFUSE(msgget), HB_REFUSE(semget), HB_REFUSE(mq_open), \
    HB_REFUSE_SECRET

/* A further filter, a trapped time-stamp counter or trapped system calls would let a process rewrite its own clock;
 * one that is not dumpable hides its maps from the judge. */
#define HB_REFUSED_PRCTL \
    HB_ONLY_IF(__NR_prctl, 14), HB_ARG(0), HB_REFUSE_VALUE(PR_SET_TSC), HB_REFUSE_VALUE(PR_SET_SECCOMP), \
    HB_REFUSE_VALUE(PR_SET_PDEATHSIG), HB_REFUSE_VALUE(PR_SET_SYSCALL_USER_DISPATCH), \
    HB_REFUSE_VALUE(PR_SET_DUMPABLE), HB_REFUSE_VALUE(PR_SET_PTRACER), HB_ALLOW

/* glibc falls back from clone3 to clone, whose flags a filter can read. */
#ifdef __NR_clone3
#define HB_NO_CLONE3 HB_ONLY_IF(__NR_clone3, 1), HB_DENY(ENOSYS),
#else
#define HB_NO_CLONE3
#endif
#define HB_NAMESPACES \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static struct sock_filter hb_grading_filter[] = {
    HB_OWN_ARCHITECTURE
    HB_REFUSED_TO_ALL
    /* other processes, new programs and processes */
    HB_REFUSE(kill), HB_REFUSE(tkill), HB_REFUSE(rt_sigqueueinfo), HB_REFUSE(rt_tgsigqueueinfo),
    HB_REFUSE(execve), HB_REFUSE(execveat),
#ifdef __NR_fork
    HB_REFUSE(fork), HB_REFUSE(vfork),
#endif
    /* priority, scheduling class and limits are the judge's to set */
    HB_REFUSE(setpriority), HB_REFUSE(sched_setscheduler), HB_REFUSE(sched_setparam), HB_REFUSE(sched_setattr),
    HB_REFUSE(ioprio_set), HB_REFUSE(setrlimit),
    /* a timer's signal can be SIGCONT, which would wake a process that the judge has stopped */
    HB_REFUSE(timer_create),
    HB_ONLY_IF(__NR_tgkill, 4),
    HB_ARG(2),
    HB_REFUSE_VALUE(SIGCONT),
    HB_ALLOW,
    /* sockets, and memory that no limit of this process counts */
    HB_REFUSE(socket), HB_REFUSE(socketpair), HB_REFUSE(memfd_create),
    HB_NO_CLONE3
    /* only threads may be made */
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
    /* limits may be read, not set: the new value's address must be null */
    HB_ONLY_IF(__NR_prlimit64, 6),
    HB_ARG(2),
    HB_ONLY_IF(0, 3),
    HB_ARG_HIGH(2),
    HB_ONLY_IF(0, 1),
    HB_ALLOW,
    HB_DENY(EPERM),
    /* descriptors that signal by a number of the process' choice */
    HB_ONLY_IF(__NR_fcntl, 8),
    HB_ARG(1),
    HB_REFUSE_VALUE(F_SETSIG), HB_REFUSE_VALUE(F_NOTIFY), HB_REFUSE_VALUE(F_SETLEASE), HB_ALLOW,
    HB_REFUSED_PRCTL,
    HB_ALLOW,
};

static struct sock_filter hb_compiler_filter[] = {
    HB_OWN_ARCHITECTURE
    HB_REFUSED_TO_ALL
    HB_NO_CLONE3
    HB_ONLY_IF(__NR_clone, 4),
    HB_ARG(0),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, HB_NAMESPACES, 0, 1),
    HB_DENY(EPERM),
    HB_ALLOW,
    /* local sockets only */
    HB_ONLY_IF(__NR_socket, 4),
    HB_ARG(0),
    HB_ONLY_IF(AF_UNIX, 1),
    HB_ALLOW,
    HB_DENY(EPERM),
    HB_REFUSED_PRCTL,
    HB_ALLOW,
};

#define HB_INSTALL(filter) hb_install(filter, sizeof filter / sizeof filter[0])

/* Filter every thread there is, those that libraries started when they were loaded included. 0, or -1 with errno when
 * the kernel has no system-call filter. */
static inline int hb_install(struct sock_filter *filter, size_t length)
{
    struct sock_fprog program = {.len = (unsigned short)length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    long done = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (done > 0)
        errno = EBUSY; /* this thread has a filter of its own */
    return done == 0 ? 0 : -1;
}

static inline int hb_lockdown(void)
{
    return HB_INSTALL(hb_grading_filter);
}

static inline int hb_lockdown_compiler(void)
{
    return HB_INSTALL(hb_compiler_filter);
}

#endif
