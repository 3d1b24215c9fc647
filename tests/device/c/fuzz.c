/* A device under random power cuts, damage, clocks and messages: no number is used twice and no window overspent.
 *
 * With clang: -fsanitize=fuzzer,address,undefined. Without it, -DRANDOM_LOOP adds a main() that makes up the input.
 */
#include "cloakwork.c"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
    uint8_t copies[2][CW_STATE_BYTES];
    int sizes[2], writes_left, torn;
    int64_t now, offset, last_seq;
    long sent; /* readings, in all runs */
    int64_t times[1 << 12];
    int count;
} world;

static cw_device device;

static int read_copy(void *context, int copy, uint8_t *data, size_t room) {
    (void)context;
    if (world.sizes[copy] < 0 || (size_t)world.sizes[copy] > room) return -1;
    memcpy(data, world.copies[copy], (size_t)world.sizes[copy]);
    return world.sizes[copy];
}

static int write_copy(void *context, int copy, const uint8_t *data, size_t size) {
    (void)context;
    if (size > CW_STATE_BYTES) abort();
    if (world.writes_left-- > 0 || world.torn) memcpy(world.copies[copy], data, size);
    if (world.writes_left >= 0) return world.sizes[copy] = (int)size, 0;
    if (world.torn) world.sizes[copy] = (int)size / 2;
    return -1;
}

static uint32_t ticks(void *context) { return (void)context, (uint32_t)world.now; }
static int64_t unix_now(void *context) { return (void)context, world.offset ? world.now + world.offset : 0; }

static int sends(void *context, const char *topic, const char *message) {
    char own[CW_TOPIC_BYTES];
    (void)context;
    cw_topic(&CW_PLAN, 1, own);
    if (!strcmp(topic, own)) return cw_receive(&device, topic, message, strlen(message)), 0;
    int64_t seq = read_seq(message, strlen(message));
    if (seq <= world.last_seq) abort(); /* a number twice, or a message that is none */
    world.last_seq = seq;
    world.sent++;
    return 0;
}

static const cw_port PORT = {NULL, read_copy, write_copy, ticks, unix_now, sends, NULL, 16};

static void check_budget(void) {
    int64_t window = CW_PLAN.window_slots * CW_PLAN.period_ms - CW_PLAN.late_ms - 2;
    world.times[world.count++ % (1 << 12)] = world.now;
    int before = world.count - 1 - (int)CW_PLAN.allowed;
    if (before >= 0 && world.now - world.times[before % (1 << 12)] < window) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cw_time time;
    char topic[2][CW_TOPIC_BYTES], message[CW_MESSAGE_BYTES];
    cw_state first = {0};
    uint8_t packet[CW_TIME_BYTES];
    long sent = world.sent;
    memset(&world, 0, sizeof world);
    world.sent = sent;
    world.writes_left = 1 << 30, world.last_seq = -1;
    first.keyed = 1;
    world.sizes[0] = world.sizes[1] = (int)pack(&CW_PLAN, &first, (char *)world.copies[0]);
    memcpy(world.copies[1], world.copies[0], (size_t)world.sizes[0]);
    cw_topic(&CW_PLAN, 0, topic[0]), cw_topic(&CW_PLAN, 1, topic[1]);
    cw_time_open(&time, 50, 0);
    if (cw_open(&device, &CW_PLAN, &PORT)) abort();
    cw_link(&device, 1);
    while (size >= 3) {
        uint8_t what = data[0], a = data[1], b = data[2];
        data += 3, size -= 3;
        switch (what < 240 ? 0 : what - 239) { /* mostly, time passes */
        case 0: {
            world.now += a % 8 ? a % 64 : b * 8;
            int result = cw_step(&device);
            if (device.error && cw_open(&device, &CW_PLAN, &PORT) < 0) return 0;
            cw_link(&device, 1);
            if (result != CW_MEASURE) break;
            check_budget();
            if (b % 4 == 1) cw_measured(&device, (int64_t)((uint64_t)a << b % 64));
            else if (b % 4 == 2) cw_failed(&device, a & 1);
            break;
        }
        case 1: cw_link(&device, 0); break;
        case 2: cw_receive(&device, topic[1], "x", 1); break;
        case 3: { /* any bytes as a message, exactly as long as they are */
            size_t length = a < size ? a : size;
            char *copy = malloc(length ? length : 1);
            if (!copy) abort();
            memcpy(copy, data, length);
            cw_receive(&device, topic[0], copy, length);
            free(copy);
            break;
        }
        case 4: { /* a reading with a number nearby: of an earlier run, of a copy, or forged */
            int64_t seq = (int64_t)(CW_PLAN.generation + (a == 7) - (a == 9)) << COUNTER_BITS | (device.state.counter + b / 32u);
            write_reading(seq, 0, b, message);
            cw_receive(&device, topic[0], message, strlen(message));
            break;
        }
        case 5: { /* the power fails, during a write or not; or one copy is damaged */
            uint8_t saved[2][CW_STATE_BYTES];
            int sizes[2] = {world.sizes[0], world.sizes[1]};
            memcpy(saved, world.copies, sizeof saved);
            if (a % 4 == 0) {
                world.writes_left = b % 4, world.torn = b & 4;
                for (int turn = 0; turn < 8; turn++) {
                    world.now += 20;
                    if (cw_step(&device) == CW_MEASURE) check_budget(), cw_measured(&device, a);
                }
                world.writes_left = 1 << 30, world.torn = 0;
            } else if (a % 4 == 1 && world.sizes[b & 1] > 0) {
                world.copies[b & 1][b * 8 % world.sizes[b & 1]] ^= (uint8_t)(1 << a % 8);
            } else if (a % 4 == 2) {
                world.sizes[b & 1] = b - 2;
            } else if (b < 64) { /* both copies are foreign: the device must refuse */
                for (int copy = 0; copy < 2; copy++) {
                    world.sizes[copy] = (int)(size < 512 ? size : 512);
                    memcpy(world.copies[copy], data, (size_t)world.sizes[copy]);
                }
                if (!cw_open(&device, &CW_PLAN, &PORT)) abort();
                memcpy(world.copies, saved, sizeof saved);
                memcpy(world.sizes, sizes, sizeof sizes);
            }
            world.now += b;
            if (cw_open(&device, &CW_PLAN, &PORT) < 0) return 0;
            break;
        }
        case 6: world.offset = a % 8 ? (int64_t)(a / 64) * 1000 + b : 0; break;
        default:
            if (cw_time_serve(&time, (uint32_t)world.now, 1, CW_PLAN.check, packet) || a % 2) {
                memset(packet, b, sizeof packet);
                memcpy(packet, data, size < sizeof packet ? size : sizeof packet);
                memcpy(packet + 24, time.nonce, 8);
                cw_time_answer(&time, (uint32_t)world.now, packet, a % 8 ? sizeof packet : b % 64u);
            }
            cw_time_unix(&time, (uint32_t)world.now);
        }
    }
    return 0;
}

#ifdef RANDOM_LOOP
int main(int count, char **arguments) {
    uint8_t data[1536];
    uint64_t state = 88172645463325252u;
    for (int turn = 0, turns = count > 1 ? atoi(arguments[1]) : 1000; turn < turns; turn++) {
        for (size_t k = 0; k < sizeof data; k++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            data[k] = (uint8_t)(state >> 24);
        }
        LLVMFuzzerTestOneInput(data, sizeof data);
    }
    return printf("%ld readings sent\n", world.sent) < 0;
}
#endif
