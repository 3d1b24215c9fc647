/* A board in memory around cloakwork.c, which tests drive from Python. */
#include "cloakwork.c"

typedef struct {
    cw_device device;
    cw_port port;
    cw_plan plan;
    cw_level level[CW_MOST_LEVELS];
    char names[2][128];
    uint8_t copies[2][CW_STATE_BYTES];
    int sizes[2], writes_left, random_left, write_ms, delayed;
    uint32_t ticks;
    int64_t unix_now;
    uint8_t random[64 * CW_MOST_LEVELS];
    char sent[64][CW_TOPIC_BYTES + CW_MESSAGE_BYTES];
    int sent_count, refuses;
} bench;

static int bench_read(void *context, int copy, uint8_t *data, size_t room) {
    bench *b = context;
    if (b->sizes[copy] < 0 || (size_t)b->sizes[copy] > room) return -1;
    memcpy(data, b->copies[copy], (size_t)b->sizes[copy]);
    return b->sizes[copy];
}

static int bench_write(void *context, int copy, const uint8_t *data, size_t size) {
    bench *b = context;
    if (b->writes_left-- <= 0) return -1;
    b->ticks += (uint32_t)b->write_ms, b->unix_now += b->write_ms, b->delayed += b->write_ms;
    memcpy(b->copies[copy], data, size);
    b->sizes[copy] = (int)size;
    return 0;
}

static uint32_t bench_ticks(void *context) { return ((bench *)context)->ticks; }
static int64_t bench_unix(void *context) { return ((bench *)context)->unix_now; }

static int bench_random(void *context, uint8_t *bytes, size_t count) {
    bench *b = context;
    memcpy(bytes, b->random, count);
    return b->random_left-- <= 0;
}

static int bench_publish(void *context, const char *topic, const char *message) {
    bench *b = context;
    if (b->refuses || b->sent_count == 64) return -1;
    writer w = {b->sent[b->sent_count++], 0};
    put(&w, topic), put(&w, " "), put(&w, message);
    return 0;
}

void bench_slow(bench *b, int write_ms) { b->write_ms = write_ms; }

int bench_delayed(bench *b) {
    int delayed = b->delayed;
    b->delayed = 0;
    return delayed;
}

size_t bench_size(void) { return sizeof(bench); }

void bench_new(bench *b, const char *site, const char *sensor, const int64_t *n, const int64_t *levels, const uint32_t *cuts,
               const uint8_t *digest, const uint8_t *check, int64_t denominator) {
    memset(b, 0, sizeof *b);
    strncpy(b->names[0], site, 127), strncpy(b->names[1], sensor, 127);
    cw_plan *p = &b->plan;
    p->site = b->names[0], p->sensor = b->names[1], p->version = (uint32_t)n[0], p->generation = (uint32_t)n[1];
    p->bench = (uint8_t)n[2], p->together = (uint8_t)n[3], p->keyed = (uint8_t)n[4];
    p->step = (uint64_t)n[5], p->step_shift = (uint32_t)n[6];
    p->resolution = (uint64_t)n[7], p->resolution_shift = (uint32_t)n[8], p->fallback = n[9], p->values = n[10];
    p->period_ms = n[11], p->offset_ms = n[12], p->late_ms = n[13], p->clock_ms = n[14];
    p->window_slots = n[15], p->allowed = n[16], p->block = n[17], p->levels = (uint32_t)n[18];
    for (uint32_t k = 0; k < p->levels && k < CW_MOST_LEVELS; k++)
        b->level[k].factor = levels[2 * k], b->level[k].count = (uint32_t)levels[2 * k + 1];
    p->level = b->level, p->cuts = (const uint32_t(*)[4])(const void *)cuts;
    memcpy(p->noise_digest, digest, 32), memcpy(p->check, check, 32);
    cw_port port = {b, bench_read, bench_write, bench_ticks, bench_unix, bench_publish, bench_random, denominator};
    b->port = port;
    b->writes_left = b->random_left = 1 << 30;
    b->sizes[0] = b->sizes[1] = -1;
}

void bench_put(bench *b, int copy, const uint8_t *data, int size) {
    if (size > 0) memcpy(b->copies[copy], data, (size_t)size);
    b->sizes[copy] = size;
}

int bench_get(const bench *b, int copy, uint8_t *data) {
    if (b->sizes[copy] > 0) memcpy(data, b->copies[copy], (size_t)b->sizes[copy]);
    return b->sizes[copy];
}

void bench_set(bench *b, uint32_t ticks, int64_t unix_now, int writes_left, int refuses) {
    b->ticks = ticks, b->unix_now = unix_now, b->writes_left = writes_left, b->refuses = refuses;
}

void bench_random_set(bench *b, const uint8_t *bytes, int count, int left) {
    memcpy(b->random, bytes, (size_t)count);
    b->random_left = left;
}

int bench_open(bench *b) { return cw_open(&b->device, &b->plan, &b->port); }
int bench_begin(bench *b, int pause) { return cw_begin(&b->device, cw_now(&b->device), pause); }
int64_t bench_now(bench *b) { return cw_now(&b->device); }
int bench_hold(bench *b, int64_t amount) { return cw_hold(&b->device, amount); }

int bench_cloak(bench *b, int missing, int64_t numerator, int64_t time, char *message) {
    return cw_cloak(&b->device, missing ? NULL : &numerator, time, message);
}

int bench_heard(bench *b, const char *message, int size, int retained) {
    return cw_heard(&b->device, message, (size_t)size, retained, cw_now(&b->device));
}

void bench_status(bench *b, int spent, char *message) { cw_status(&b->device, spent ? "spent" : STATES[ONLINE], message); }

int bench_step(bench *b) { return cw_step(&b->device); }
int bench_measured(bench *b, int64_t numerator) { return cw_measured(&b->device, numerator); }
int bench_failed(bench *b, int invalid) { return cw_failed(&b->device, invalid); }
void bench_link(bench *b, int up) { cw_link(&b->device, up); }
void bench_receive(bench *b, const char *topic, const char *message) {
    cw_receive(&b->device, topic, message, strlen(message));
}
uint32_t bench_wait(const bench *b) { return b->device.wait; }

/* The oldest message handed over, as "topic message"; empty if there is none. */
void bench_sent(bench *b, char *line) {
    line[0] = 0;
    if (!b->sent_count) return;
    memcpy(line, b->sent[0], sizeof b->sent[0]);
    memmove(b->sent[0], b->sent[1], sizeof b->sent[0] * (size_t)--b->sent_count);
}

void bench_words(const uint8_t *key, const char *site, const char *sensor, uint32_t generation, uint32_t epoch,
                 uint64_t seq, uint8_t *blocks, int count) {
    cw_plan plan = {0};
    static cw_device device;
    plan.site = site, plan.sensor = sensor, plan.generation = generation;
    device.plan = &plan, device.epoch = epoch;
    memcpy(device.key, key, CW_KEY_BYTES);
    open_stream(&device);
    for (int k = 0; k < count; k++) stream_block(&device, seq, (uint8_t)k, blocks + 32 * k);
}

void bench_ratchet(const uint8_t *key, uint8_t *next) { ratchet(key, next); }

/* Draws of a device, with the keys of its epochs: what benchmarks count. */
int64_t bench_draws(bench *b, int count) {
    int64_t sum = 0, noise = 0;
    for (int k = 0; k < count; k++) {
        use_epoch(&b->device, (uint32_t)k / EPOCH);
        draw(&b->device, (uint64_t)k, &noise);
        sum += noise;
    }
    return sum;
}

/* Change one number of the plan, as an editor or a damaged flash would: 2 the version, 4 the budget. */
void bench_edit(bench *b, int which) {
    if (which == 2) b->plan.version++;
    else b->plan.allowed++;
}
