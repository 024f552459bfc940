// A program that nobody has put on a list.
#include <stdio.h>

int main(void) {
    puts("RAN");
    return 0;
}
