// Races: `swap A B COUNT` exchanges two names again and again; `read PATH COUNT` and `write PATH COUNT`
// try as often to read and to write, and say how often they could.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    const char *what = argv[1], *path = argv[2];
    if (!strcmp(what, "swap")) {
        if (argc < 5) return 2;
        long done = 0;
        for (long round = atol(argv[4]); round > 0; round--)
            done += renameat2(AT_FDCWD, path, AT_FDCWD, argv[3], RENAME_EXCHANGE) == 0;
        printf("swapped %ld\n", done);
        return done == 0;
    }
    long done = 0;
    for (long round = atol(argv[3]); round > 0; round--) {
        char bytes[4096];
        int reading = !strcmp(what, "read");
        int fd = open(path, reading ? O_RDONLY : O_WRONLY | O_APPEND);
        if (fd < 0) continue;
        long count = reading ? read(fd, bytes, sizeof bytes - 1) : write(fd, "x", 1);
        close(fd);
        if (count <= 0) continue;
        done++;
        // Whoever hears it looks for a secret in it.
        if (reading) {
            bytes[count] = 0;
            if (strstr(bytes, "SECRET-")) {
                printf("%s\n", bytes);
                return 3;
            }
        }
    }
    printf("could %ld\n", done);
    return 0;
}
