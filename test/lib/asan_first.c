// Preloaded after libasan. The constructor of libgpg-error calls bindtextdomain(), which holds a lock of libc while it
// allocates; were that the first allocation of the process, ASan would start under that lock, unbalance it, and the next
// bindtextdomain() would hang. -z initfirst lets this constructor run before any other, so that ASan starts here.
#include <stdlib.h>
__attribute__((constructor)) static void first(void) {
    void *volatile memory = malloc(1);
    free(memory);
}
