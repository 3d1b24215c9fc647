/* A board, simulated on a computer: readings come from read_hardware, the state lies in the files state.0 and state.1,
 * and messages go to standard output. `./board 20` stops after 20 messages. Replace the functions below by those of
 * your board; keep the loop.
 */
#define _POSIX_C_SOURCE 200809L
#include "cloakwork.h"
#include "plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char *const COPIES[] = {"state.0", "state.1"};
static cw_device device; /* static: about 5 kB */
static long messages;

/* Your hardware: a whole number of sixteenths of the unit, as a DS18B20 gives it. Here it is always 21.25 degrees. */
enum { DENOMINATOR = 16 };
static int read_hardware(int64_t *numerator) {
    *numerator = 340;
    return 0;
}

static int read_block(void *context, int copy, uint8_t *data, size_t room) {
    (void)context;
    int file = open(COPIES[copy], O_RDONLY);
    if (file < 0) return -1;
    ssize_t size = read(file, data, room);
    close(file);
    return (int)size;
}

static int64_t milliseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns 0 only once the data are on the storage: fsync here, a commit or a flush on a board. */
static int write_block(void *context, int copy, const uint8_t *data, size_t size) {
    static int warned;
    (void)context;
    int64_t start = milliseconds(CLOCK_MONOTONIC);
    int file = open(COPIES[copy], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) return -1;
    int failed = write(file, data, size) != (ssize_t)size || fsync(file);
    int64_t took = milliseconds(CLOCK_MONOTONIC) - start;
    if (took >= CW_PLAN.late_ms && !warned++)
        fprintf(stderr, "writing the state took %d ms, but a reading may be at most %d ms late. If readings are missing, set "
                        "a longer late in the site file, then plan and provision again.\n",
                (int)took, (int)CW_PLAN.late_ms);
    return close(file) || failed;
}

static uint32_t ticks(void *context) { return (void)context, (uint32_t)milliseconds(CLOCK_MONOTONIC); }

/* A real device asks a time server with cw_time, which bounds the error. This one trusts the computer's clock. */
static int64_t unix_ms(void *context) { return (void)context, milliseconds(CLOCK_REALTIME); }

/* The broker: what is published comes back, as it does to a device that has subscribed to its own topics. */
static int publish(void *context, const char *topic, const char *message) {
    (void)context;
    printf("%s %s\n", topic, message);
    fflush(stdout);
    messages++;
    cw_receive(&device, topic, message, strlen(message));
    return 0;
}

int main(int count, char **arguments) {
    static const cw_port port = {NULL, read_block, write_block, ticks, unix_ms, publish, NULL, DENOMINATOR};
    long stop_after = count > 1 ? strtol(arguments[1], NULL, 10) : 0;
    int lock = open("lock", O_WRONLY | O_CREAT, 0600);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB)) {
        fputs("another process already runs this device\n", stderr);
        return 2;
    }
    int result = cw_open(&device, &CW_PLAN, &port);
    if (result) {
        fprintf(stderr, "%s\n", cw_text(result));
        return 2;
    }
    cw_link(&device, 1); /* a real program calls this when the broker has granted both subscriptions */
    while (!stop_after || messages < stop_after) {
        result = cw_step(&device);
        if (result == CW_MEASURE) {
            int64_t numerator;
            result = read_hardware(&numerator) ? cw_failed(&device, 0) : cw_measured(&device, numerator);
        }
        if (result < 0) {
            fprintf(stderr, "%s\n", cw_text(result));
            if (result != CW_STORAGE) return 2;
        }
        struct timespec pause = {device.wait / 1000, (long)(device.wait % 1000) * 1000000};
        nanosleep(&pause, NULL);
    }
    return 0;
}
