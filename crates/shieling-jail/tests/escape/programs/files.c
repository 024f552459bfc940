// One call on files, by name, and what it gives: 0 if it succeeded, otherwise 1 and the errno's name.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static int socket_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    return bind(fd, (struct sockaddr *)&address, sizeof address);
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    return connect(fd, (struct sockaddr *)&address, sizeof address);
}

// Writes through a descriptor, which is what an open alone does not show.
static int written(int fd) { return fd < 0 ? -1 : write(fd, "x", 1) == 1 ? 0 : -1; }

static int by_mapping(const char *path) {
    int fd = open(path, O_RDWR);
    if (fd < 0) return -1;
    char *at = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return -1;
    at[0] = 'x';
    return msync(at, 1, MS_SYNC);
}

static int by_tmpfile(const char *directory, const char *path) {
    int fd = open(directory, O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0) return -1;
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int by_copy(const char *from, const char *path) {
    int in = open(from, O_RDONLY), out = open(path, O_WRONLY);
    if (in < 0 || out < 0) return -1;
    return copy_file_range(in, NULL, out, NULL, 1, 0) == 1 ? 0 : -1;
}

// Opened for reading, and then again for writing through /proc.
static int by_proc(const char *path) {
    int fd = open(path, O_PATH);
    if (fd < 0) return -1;
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return written(open(name, O_WRONLY));
}

static int by_handle(const char *directory, unsigned long inode) {
    int mount = open(directory, O_RDONLY | O_DIRECTORY);
    if (mount < 0) return -1;
    struct { struct file_handle head; unsigned int bytes[4]; } handle = {.head = {.handle_bytes = 8, .handle_type = 1}};
    memcpy(handle.head.f_handle, (unsigned int[]){(unsigned int)inode, 0}, 8);
    return open_by_handle_at(mount, &handle.head, O_RDONLY) < 0 ? -1 : 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *call = argv[1], *path = argv[2], *other = argc > 3 ? argv[3] : "";
    struct timespec times[2] = {{1, 0}, {1, 0}};
    int result = -2;
#define CALL(name, expression) if (!strcmp(call, name)) result = (int)(expression)
    CALL("read", ({ char b[512]; int fd = open(path, O_RDONLY); long n = fd < 0 ? -1 : read(fd, b, sizeof b); if (n > 0) fwrite(b, 1, n, stdout); n; }));
    CALL("stat", ({ struct stat s; stat(path, &s); }));
    CALL("write", written(open(path, O_WRONLY)));
    CALL("append", written(open(path, O_WRONLY | O_APPEND)));
    CALL("create", open(path, O_CREAT | O_EXCL | O_WRONLY, 0600));
    CALL("creat", creat(path, 0600));
    CALL("open-truncate", open(path, O_WRONLY | O_TRUNC));
    CALL("read-truncate", open(path, O_RDONLY | O_TRUNC));
    CALL("truncate", truncate(path, 0));
    CALL("ftruncate", ({ int fd = open(path, O_RDWR); fd < 0 ? -1 : ftruncate(fd, 0); }));
    CALL("fallocate", ({ int fd = open(path, O_RDWR); fd < 0 ? -1 : fallocate(fd, 0, 0, 4096); }));
    CALL("unlink", unlink(path));
    CALL("rmdir", rmdir(path));
    CALL("mkdir", mkdir(path, 0700));
    CALL("mknod", mknod(path, S_IFREG | 0600, 0));
    CALL("mkfifo", mkfifo(path, 0600));
    CALL("mkchar", mknod(path, S_IFCHR | 0600, 0x103));
    CALL("mkblock", mknod(path, S_IFBLK | 0600, 0x800));
    CALL("chmod", chmod(path, 0777));
    CALL("fchmodat2", syscall(452, AT_FDCWD, path, 0777, 0));
    CALL("fchmod", ({ int fd = open(path, O_RDONLY); fd < 0 ? -1 : fchmod(fd, 0777); }));
    CALL("chown", chown(path, getuid(), getgid()));
    CALL("lchown", lchown(path, getuid(), getgid()));
    CALL("utimens", utimensat(AT_FDCWD, path, times, 0));
    CALL("touch", utimensat(AT_FDCWD, path, NULL, 0));
    CALL("setxattr", setxattr(path, "user.escape", "x", 1, 0));
    CALL("removexattr", removexattr(path, "user.escape"));
    CALL("socket", socket_at(path));
    CALL("connect", connect_to(path));
    CALL("mmap", by_mapping(path));
    CALL("proc", by_proc(path));
    CALL("symlink", symlink(other, path));
    CALL("link", linkat(AT_FDCWD, other, AT_FDCWD, path, 0));
    CALL("link-follow", linkat(AT_FDCWD, other, AT_FDCWD, path, AT_SYMLINK_FOLLOW));
    CALL("rename", rename(path, other));
    CALL("noreplace", renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_NOREPLACE));
    CALL("exchange", renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE));
    CALL("tmpfile", by_tmpfile(path, other));
    CALL("copy", by_copy(other, path));
    CALL("handle", by_handle(path, strtoul(other, NULL, 10)));
    if (result == -2) return 2;
    if (result < 0) {
        printf("%s: %s\n", call, strerrorname_np(errno));
        return 1;
    }
    return 0;
}
