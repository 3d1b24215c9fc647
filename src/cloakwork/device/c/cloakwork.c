/* See cloakwork.h. One file, so that it drops into any build; each part names the Python module that it follows. */
#include "cloakwork.h"

#include <string.h>

#define EPOCH 64
#define COUNTER_BITS 28
#define LARGEST_COUNTER ((1u << COUNTER_BITS) - 1)
#define LARGEST_GENERATION ((1u << 25) - 1)
#define LARGEST ((INT64_C(1) << 53) - 1) /* every JSON reader holds it exactly */
#define MOST_STEPS INT64_C(2147483647)
#define MOST_SHIFT 160
#define FARTHEST (1u << 18)
#define LONGEST_NAME 64
#define GAIN 10100u
#define DRIFT 10000
#define LONGEST_WAIT 1000
#define GRACE 500
#define PATIENCE 10000
#define IN_FLIGHT 8

enum { ONLINE, FAILING, INVALID, SLOW, SKIPPING };
static const char *const STATES[] = {"online", "failing", "invalid", "slow", "skipping"};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Division that rounds down, also below zero; b > 0. */
static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static int64_t floor_mod(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

/* ---- SHA-256 and HMAC (keystream.py) ---- */

typedef struct {
    uint32_t h[8];
    uint8_t block[64];
    uint64_t size;
} sha;

static const uint32_t START[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                  0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
static const uint32_t ROUND[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t load_word(const uint8_t *from) {
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void store_number(uint8_t *to, uint64_t value, int size) {
    for (int k = size - 1; k >= 0; k--, value >>= 8) to[k] = (uint8_t)value;
}

#define SHA_ROUND(a, b, c, d, e, f, g, h, t)                                                                       \
    (h += (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + ROUND[t] + w[t], d += h,          \
     h += (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b))))

static void compress(uint32_t h[8], const uint8_t block[64]) {
    uint32_t w[64], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], i = h[7];
    for (int t = 0; t < 16; t++) w[t] = load_word(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = w[t - 16] + (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) + w[t - 7] + (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10);
    }
    for (int t = 0; t < 64; t += 8) { /* eight rounds at a time need no moves between the variables */
        SHA_ROUND(a, b, c, d, e, f, g, i, t), SHA_ROUND(i, a, b, c, d, e, f, g, t + 1);
        SHA_ROUND(g, i, a, b, c, d, e, f, t + 2), SHA_ROUND(f, g, i, a, b, c, d, e, t + 3);
        SHA_ROUND(e, f, g, i, a, b, c, d, t + 4), SHA_ROUND(d, e, f, g, i, a, b, c, t + 5);
        SHA_ROUND(c, d, e, f, g, i, a, b, t + 6), SHA_ROUND(b, c, d, e, f, g, i, a, t + 7);
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += i;
}

static void sha_start(sha *s) {
    memcpy(s->h, START, sizeof START);
    s->size = 0;
}

static void sha_add(sha *s, const void *data, size_t size) {
    const uint8_t *from = data;
    while (size) {
        size_t filled = (size_t)(s->size % 64), part = 64 - filled < size ? 64 - filled : size;
        memcpy(s->block + filled, from, part);
        s->size += part, from += part, size -= part;
        if (filled + part == 64) compress(s->h, s->block);
    }
}

static void sha_add_number(sha *s, uint64_t value) {
    uint8_t bytes[8];
    store_number(bytes, value, 8);
    sha_add(s, bytes, 8);
}

static void sha_add_name(sha *s, const char *name) {
    uint8_t size = (uint8_t)strlen(name);
    sha_add(s, &size, 1);
    sha_add(s, name, size);
}

static void sha_end(sha *s, uint8_t digest[32]) {
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = 8 * s->size;
    sha_add(s, padding, 1 + (size_t)((119 - s->size % 64) % 64));
    sha_add_number(s, bits);
    for (int k = 0; k < 8; k++) store_number(digest + 4 * k, s->h[k], 4);
}

void cw_sha256(const uint8_t *data, size_t size, uint8_t digest[32]) {
    sha s;
    sha_start(&s);
    sha_add(&s, data, size);
    sha_end(&s, digest);
}

/* Begin the inner (0x36) or outer (0x5c) hash of HMAC. */
static void hmac_start(sha *s, const uint8_t key[CW_KEY_BYTES], uint8_t pad) {
    uint8_t block[64];
    for (int k = 0; k < 64; k++) block[k] = (uint8_t)((k < CW_KEY_BYTES ? key[k] : 0) ^ pad);
    sha_start(s);
    sha_add(s, block, 64);
}

static void hmac_end(sha *inner, const uint8_t key[CW_KEY_BYTES], uint8_t digest[32]) {
    sha outer;
    uint8_t between[32];
    sha_end(inner, between);
    hmac_start(&outer, key, 0x5c);
    sha_add(&outer, between, 32);
    sha_end(&outer, digest);
}

void cw_hmac(const uint8_t key[CW_KEY_BYTES], const uint8_t *data, size_t size, uint8_t digest[32]) {
    sha s;
    hmac_start(&s, key, 0x36);
    sha_add(&s, data, size);
    hmac_end(&s, key, digest);
}

static void ratchet(const uint8_t key[CW_KEY_BYTES], uint8_t next[CW_KEY_BYTES]) {
    static const char label[] = "cloakwork/v1/ratchet"; /* with the zero at its end */
    uint8_t digest[CW_KEY_BYTES];
    cw_hmac(key, (const uint8_t *)label, sizeof label, digest);
    memcpy(next, digest, CW_KEY_BYTES);
}

/* The keyed hash of the epoch: both halves of HMAC are kept after the key, which halves the work of a draw. */
static void open_stream(cw_device *d) {
    static const char label[] = "cloakwork/v1/noise";
    uint8_t key[CW_KEY_BYTES];
    sha s;
    hmac_start(&s, d->key, 0x36);
    sha_add(&s, label, sizeof label);
    sha_add_name(&s, d->plan->site);
    sha_add_name(&s, d->plan->sensor);
    sha_add_number(&s, d->plan->generation);
    sha_add_number(&s, d->epoch);
    hmac_end(&s, d->key, key);
    hmac_start(&s, key, 0x36);
    memcpy(d->inner, s.h, sizeof d->inner);
    hmac_start(&s, key, 0x5c);
    memcpy(d->outer, s.h, sizeof d->outer);
    d->has_stream = 1;
}

/* Block b of the stream: two words of 128 bits. */
static void stream_block(const cw_device *d, uint64_t seq, uint8_t b, uint8_t block[32]) {
    sha s;
    memcpy(s.h, d->inner, sizeof s.h);
    s.size = 64;
    sha_add_number(&s, seq);
    sha_add(&s, &b, 1);
    sha_end(&s, block);
    memcpy(s.h, d->outer, sizeof s.h);
    s.size = 64;
    sha_add(&s, block, 32);
    sha_end(&s, block);
}

/* ---- noise (table.py, noise.py) ---- */

/* Whether cut <= goal, in the same time for all numbers. */
static uint32_t at_most(const uint32_t cut[4], const uint32_t goal[4]) {
    uint32_t borrow = 0;
    for (int k = 3; k >= 0; k--) borrow = (uint32_t)(((uint64_t)goal[k] - cut[k] - borrow) >> 63);
    return 1 - borrow;
}

int64_t cw_look_up(const uint32_t (*cuts)[4], uint32_t count, const uint8_t word[16]) {
    uint32_t goal[4], below = 0, step = 1;
    for (int k = 0; k < 4; k++) goal[k] = load_word(word + 4 * k);
    goal[0] &= 0x7fffffffu;
    while (step <= count / 2) step <<= 1;
    for (; step; step >>= 1) {
        uint32_t probe = below + step < count ? below + step : count;
        below += (probe - below) * at_most(cuts[probe - 1], goal);
    }
    return (int64_t)below * (1 - 2 * (word[0] >> 7));
}

/* Random words of the board, refused if the generator is stuck: no word is 0, and no half repeats. */
static int board_words(const cw_device *d, uint8_t *words, uint32_t count) {
    static const uint8_t zero[16] = {0};
    if (!d->port->random || d->port->random(d->port->context, words, 16 * (size_t)count)) return CW_NO_RANDOM;
    for (uint32_t k = 0; k < 2 * count; k++) {
        if (k % 2 == 0 && !memcmp(words + 8 * k, zero, 16)) return CW_NO_RANDOM;
        for (uint32_t j = 0; j < k; j++)
            if (!memcmp(words + 8 * k, words + 8 * j, 8)) return CW_NO_RANDOM;
    }
    return 0;
}

static int draw(cw_device *d, uint64_t seq, int64_t *noise) {
    const cw_plan *plan = d->plan;
    uint8_t words[16 * CW_MOST_LEVELS + 16];
    uint32_t start = 0;
    if (!plan->keyed && board_words(d, words, plan->levels)) return CW_NO_RANDOM;
    if (plan->keyed && !d->has_stream) open_stream(d);
    for (uint32_t b = 0; plan->keyed && 2 * b < plan->levels; b++) stream_block(d, seq, (uint8_t)b, words + 32 * b);
    *noise = 0;
    for (uint32_t k = 0; k < plan->levels; start += plan->level[k++].count)
        *noise += plan->level[k].factor * cw_look_up(plan->cuts + start, plan->level[k].count, words + 16 * k);
    return 0;
}

/* ---- a reading in steps (device.py): whole numbers of 256 bits, the lowest word first ---- */

static void wide_product(uint32_t w[8], uint64_t x, uint64_t y) {
    uint32_t parts[4] = {(uint32_t)x, (uint32_t)(x >> 32), (uint32_t)y, (uint32_t)(y >> 32)};
    memset(w, 0, 8 * sizeof *w);
    for (int i = 0; i < 2; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < 2; j++, carry >>= 32) {
            carry += (uint64_t)parts[i] * parts[2 + j] + w[i + j];
            w[i + j] = (uint32_t)carry;
        }
        w[i + 2] = (uint32_t)carry;
    }
}

static void wide_scale(uint32_t w[8], uint32_t factor) {
    uint64_t carry = 0;
    for (int k = 0; k < 8; k++, carry >>= 32) {
        carry += (uint64_t)w[k] * factor;
        w[k] = (uint32_t)carry;
    }
}

static void wide_shift(uint32_t w[8], uint32_t bits) {
    for (int k = 7; k >= 0; k--) {
        int from = k - (int)(bits / 32);
        uint64_t two = (from >= 0 ? (uint64_t)w[from] << 32 : 0) | (from >= 1 ? w[from - 1] : 0);
        w[k] = (uint32_t)(two << bits % 32 >> 32);
    }
}

static void wide_add(uint32_t w[8], const uint32_t v[8]) {
    uint64_t carry = 0;
    for (int k = 0; k < 8; k++, carry >>= 32) {
        carry += (uint64_t)w[k] + v[k];
        w[k] = (uint32_t)carry;
    }
}

/* w - v, modulo 2^256. */
static void wide_less(uint32_t w[8], const uint32_t v[8]) {
    uint64_t borrow = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t rest = (uint64_t)w[k] - v[k] - borrow;
        w[k] = (uint32_t)rest;
        borrow = rest >> 63;
    }
}

/* n / denominator in steps, rounded and cut to the range: a division with as many steps for every reading. */
static int64_t in_steps(const cw_plan *plan, int64_t denominator, int64_t n) {
    int64_t low = plan->values ? 0 : -MOST_STEPS, high = plan->values ? plan->values - 1 : MOST_STEPS, steps = low;
    uint32_t rest[8], unit[8], reading[8];
    wide_product(unit, (uint64_t)denominator, plan->step); /* half a step, over a common denominator */
    memcpy(rest, unit, sizeof rest);
    wide_scale(rest, (uint32_t)(1 - 2 * low));
    wide_product(reading, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, 1);
    wide_shift(reading, plan->step_shift + 1);
    if (n < 0) wide_less(rest, reading); else wide_add(rest, reading);
    if (rest[7] >> 31) return low;
    for (uint32_t bit = 33; bit-- > 0;) {
        uint32_t try[8], part[8];
        memcpy(part, unit, sizeof part);
        wide_shift(part, bit + 1);
        memcpy(try, rest, sizeof try);
        wide_less(try, part);
        if (!(try[7] >> 31) && steps + (INT64_C(1) << bit) <= high) {
            memcpy(rest, try, sizeof rest);
            steps += INT64_C(1) << bit;
        }
    }
    return steps;
}

/* ---- text: messages (wire.py) and the state (state.py) have exactly one form ---- */

typedef struct {
    char *text;
    size_t size;
} writer;

static void put(writer *w, const char *text) {
    size_t size = strlen(text);
    memcpy(w->text + w->size, text, size + 1);
    w->size += size;
}

static void put_number(writer *w, int64_t value) {
    char digits[24];
    size_t at = sizeof digits - 1;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    digits[at] = 0;
    do digits[--at] = (char)('0' + rest % 10); while (rest /= 10);
    if (value < 0) digits[--at] = '-';
    put(w, digits + at);
}

static void put_hex(writer *w, const uint8_t *bytes, size_t size) {
    for (size_t k = 0; k < size; k++) {
        char two[3] = {"0123456789abcdef"[bytes[k] >> 4], "0123456789abcdef"[bytes[k] & 15], 0};
        put(w, two);
    }
}

typedef struct {
    const char *at, *end;
    int bad;
} reader;

static int sees(const reader *r, const char *text) {
    size_t size = strlen(text);
    return !r->bad && (size_t)(r->end - r->at) >= size && !memcmp(r->at, text, size);
}

static void expect(reader *r, const char *text) {
    if (sees(r, text)) r->at += strlen(text); else r->bad = 1;
}

static int64_t number(reader *r, int signed_too) {
    int64_t value = 0, sign = 1;
    int digits = 0;
    if (signed_too && sees(r, "-")) sign = -1, r->at++;
    const char *start = r->at;
    for (; !r->bad && r->at < r->end && *r->at >= '0' && *r->at <= '9' && digits < 17; digits++)
        value = 10 * value + (*r->at++ - '0');
    if (!digits || digits > 16 || value > LARGEST || (*start == '0' && (digits > 1 || sign < 0))) r->bad = 1;
    return r->bad ? 0 : sign * value;
}

static void hex(reader *r, uint8_t *bytes, size_t size) {
    static const char digits[] = "0123456789abcdef";
    for (size_t k = 0; k < 2 * size && !r->bad; k++) {
        const char *found = r->at < r->end && *r->at ? strchr(digits, *r->at) : NULL;
        if (!found) {
            r->bad = 1;
            return;
        }
        bytes[k / 2] = (uint8_t)(bytes[k / 2] << 4 | (found - digits));
        r->at++;
    }
}

static void write_reading(int64_t seq, int64_t time, int64_t value, char message[CW_MESSAGE_BYTES]) {
    writer w = {message, 0};
    put(&w, "{\"v\":1,\"seq\":"), put_number(&w, seq);
    put(&w, ",\"time\":"), put_number(&w, time);
    put(&w, ",\"value\":"), put_number(&w, value);
    put(&w, "}");
}

/* The sequence number of a reading, or -1 if this is none. */
static int64_t read_seq(const char *message, size_t size) {
    reader r = {message, message + size, size >= CW_MESSAGE_BYTES};
    expect(&r, "{\"v\":1,\"seq\":");
    int64_t seq = number(&r, 0);
    expect(&r, ",\"time\":"), number(&r, 0);
    expect(&r, ",\"value\":"), number(&r, 1);
    expect(&r, "}");
    return r.bad || r.at != r.end ? -1 : seq;
}

void cw_topic(const cw_plan *plan, int status, char topic[CW_TOPIC_BYTES]) {
    writer w = {topic, 0};
    put(&w, "cloakwork/v1/"), put(&w, plan->site), put(&w, "/"), put(&w, plan->sensor);
    put(&w, status ? "/status" : plan->bench ? "/bench" : "/reading");
}

static size_t pack(const cw_plan *plan, const cw_state *s, char data[CW_STATE_BYTES]) {
    writer w = {data, 0};
    uint8_t digest[32];
    put(&w, "{\"v\": 1, \"site\": \""), put(&w, plan->site);
    put(&w, "\", \"sensor\": \""), put(&w, plan->sensor);
    put(&w, "\", \"generation\": "), put_number(&w, plan->generation);
    put(&w, ", \"version\": "), put_number(&w, s->version);
    put(&w, ", \"counter\": "), put_number(&w, s->counter);
    put(&w, ", \"clock\": "), put_number(&w, s->clock);
    put(&w, ", \"runs\": [");
    for (uint32_t k = 0; k < s->run_count; k++) {
        put(&w, k ? ", [" : "["), put_number(&w, s->runs[k][0]);
        put(&w, ", "), put_number(&w, s->runs[k][1]), put(&w, "]");
    }
    put(&w, "], \"blocked\": "), put_number(&w, s->blocked);
    put(&w, s->keyed ? ", \"key\": \"" : ", \"key\": null}");
    if (s->keyed) put_hex(&w, s->key, CW_KEY_BYTES), put(&w, "\"}");
    cw_sha256((const uint8_t *)data, w.size, digest);
    put(&w, "\n"), put_hex(&w, digest, 32), put(&w, "\n");
    return w.size;
}

/* Whether these bytes are a whole state of this device; its digest tells two states apart. */
static int unpack(const cw_plan *plan, const char *data, size_t size, cw_state *s, uint8_t digest[32]) {
    reader r = {data, data + size, 0};
    uint8_t stored[32] = {0};
    memset(s, 0, sizeof *s);
    expect(&r, "{\"v\": 1, \"site\": \""), expect(&r, plan->site);
    expect(&r, "\", \"sensor\": \""), expect(&r, plan->sensor);
    expect(&r, "\", \"generation\": ");
    if (number(&r, 0) != plan->generation) return 0;
    expect(&r, ", \"version\": "), s->version = number(&r, 0);
    expect(&r, ", \"counter\": ");
    int64_t counter = number(&r, 0);
    s->counter = (uint32_t)least(counter, LARGEST_COUNTER + 1); /* the first free one: after the last, none is */
    expect(&r, ", \"clock\": "), s->clock = number(&r, 1);
    expect(&r, ", \"runs\": [");
    for (; sees(&r, s->run_count ? ", [" : "[") && s->run_count < CW_MOST_RUNS; s->run_count++) {
        int64_t *run = s->runs[s->run_count];
        expect(&r, s->run_count ? ", [" : "["), run[0] = number(&r, 0);
        expect(&r, ", "), run[1] = number(&r, 0), expect(&r, "]");
        if (run[0] > run[1] || (s->run_count && run[0] <= run[-1])) r.bad = 1;
    }
    expect(&r, "], \"blocked\": "), s->blocked = number(&r, 0);
    s->keyed = (uint8_t)sees(&r, ", \"key\": \"");
    expect(&r, s->keyed ? ", \"key\": \"" : ", \"key\": null");
    if (s->keyed) hex(&r, s->key, CW_KEY_BYTES), expect(&r, "\"");
    expect(&r, "}");
    if (r.bad || counter > LARGEST_COUNTER + 1) return 0;
    cw_sha256((const uint8_t *)data, (size_t)(r.at - data), digest);
    expect(&r, "\n"), hex(&r, stored, 32), expect(&r, "\n");
    return !r.bad && r.at == r.end && !memcmp(stored, digest, 32);
}

/* ---- the state in two copies (state.py) ---- */

/* Write both copies. The device may use what they allow only after this returns 0. */
static int save(cw_device *d) {
    char data[CW_STATE_BYTES];
    d->state.version++;
    size_t size = pack(d->plan, &d->state, data);
    int first = d->first_copy; /* the copy whose write failed is written first, so that the other stays whole */
    for (int turn = 0; turn < 2; turn++) {
        d->first_copy = turn ? 1 - first : first;
        if (d->port->write_block(d->port->context, d->first_copy, (const uint8_t *)data, size)) return CW_STORAGE;
    }
    d->first_copy = 0;
    return 0;
}

/* Load the newest state of this device; both copies hold it when this returns 0. */
static int load(cw_device *d) {
    uint8_t digests[2][32];
    char data[CW_STATE_BYTES];
    cw_state other, *copies[2] = {&d->state, &other};
    int whole[2];
    for (int copy = 0; copy < 2; copy++) {
        int size = d->port->read_block(d->port->context, copy, (uint8_t *)data, sizeof data);
        whole[copy] = size > 0 && (size_t)size <= sizeof data &&
                      unpack(d->plan, data, (size_t)size, copies[copy], digests[copy]);
    }
    if (!whole[0] && !whole[1]) return CW_NO_STATE;
    int same = whole[0] && whole[1] && d->state.version == other.version;
    if (same && memcmp(digests[0], digests[1], 32)) return CW_CONTRADICTION;
    if (same) return 0;
    int newest = !whole[0] || (whole[1] && other.version > d->state.version);
    if (newest) d->state = other;
    size_t size = pack(d->plan, &d->state, data);
    return d->port->write_block(d->port->context, 1 - newest, (const uint8_t *)data, size) ? CW_STORAGE : 0;
}

/* ---- the budget (slots.py) ---- */

static int64_t used(const cw_device *d, int64_t slot) {
    int64_t first = slot - d->plan->window_slots + 1, sum = 0;
    for (uint32_t k = 0; k < d->state.run_count; k++)
        sum += most(0, least(d->state.runs[k][1], slot) - most(d->state.runs[k][0], first) + 1);
    return sum;
}

static int64_t last_slot(const cw_device *d) {
    return d->state.run_count ? d->state.runs[d->state.run_count - 1][1] : -1;
}

static void remove_run(cw_state *s, uint32_t k) {
    s->run_count--;
    memmove(s->runs[k], s->runs[k + 1], (s->run_count - k) * sizeof s->runs[k]);
}

static void use(cw_device *d, int64_t slot) {
    cw_state *s = &d->state;
    if (s->run_count && last_slot(d) == slot - 1) {
        s->runs[s->run_count - 1][1] = slot;
    } else {
        s->runs[s->run_count][0] = s->runs[s->run_count][1] = slot;
        s->run_count++;
    }
    while (s->run_count > 1 && s->runs[0][1] <= slot - d->plan->window_slots) remove_run(s, 0);
    if (s->run_count > CW_MOST_RUNS) { /* close the smallest gap: its slots count as used, which is never too many */
        uint32_t at = 0;
        for (uint32_t k = 1; k + 1 < s->run_count; k++)
            if (s->runs[k + 1][0] - s->runs[k][1] < s->runs[at + 1][0] - s->runs[at][1]) at = k;
        s->runs[at][1] = s->runs[at + 1][1];
        remove_run(s, at + 1);
    }
}

static uint32_t take(cw_device *d, int64_t slot, uint32_t most_slots) {
    uint32_t taken = 0;
    for (; taken < most_slots && slot > last_slot(d) && (!d->plan->allowed || used(d, slot) < d->plan->allowed); taken++)
        use(d, slot++);
    return taken;
}

/* ---- the device (device.py) ---- */

int64_t cw_now(cw_device *d) {
    uint32_t ticks = d->port->ticks(d->port->context), elapsed = ticks - d->ticks;
    if (elapsed >> 31) elapsed = 0;
    d->ticks = ticks;
    uint64_t counted = (uint64_t)d->counted + elapsed;
    d->time += (int64_t)(elapsed + counted / GAIN);
    d->counted = (uint32_t)(counted % GAIN);
    return d->time;
}

static int is_blocked(const cw_device *d, int64_t now) {
    return d->state.blocked > 0 && d->state.blocked > floor_div(now, d->plan->period_ms);
}

static void use_epoch(cw_device *d, uint32_t epoch) {
    for (; d->epoch < epoch; d->epoch++) {
        d->has_stream = 0;
        ratchet(d->key, d->key);
    }
}

static int save_counter(cw_device *d, uint32_t counter, int64_t now) {
    memcpy(d->state.key, d->key, CW_KEY_BYTES);
    if (counter / EPOCH > d->epoch) ratchet(d->key, d->state.key);
    d->state.counter = counter;
    d->state.clock = now;
    return save(d);
}

/* Reserve this slot and some after it, with as many numbers, on durable storage; 1 if done, 0 if the budget is spent. */
static int reserve(cw_device *d, int64_t slot, int64_t now) {
    /* a block ends with its epoch, so the storage never holds the key of a past epoch */
    uint32_t counter = d->state.counter, most_slots = (uint32_t)least(d->plan->block, EPOCH - counter % EPOCH);
    d->promised = -1;
    if (slot < d->state.blocked) return 0;
    if (counter + most_slots > LARGEST_COUNTER) return CW_NUMBERS_USED;
    uint32_t taken = take(d, slot, most_slots);
    if (!taken) return 0;
    d->next = counter;
    use_epoch(d, counter / EPOCH);
    int failed = save_counter(d, counter + taken, now);
    if (failed) return failed;
    d->promised = slot + taken - 1;
    return 1;
}

int cw_checkpoint(cw_device *d, int64_t now) {
    if (now - d->state.clock < least(300000, d->plan->window_slots * d->plan->period_ms / 16)) return 0;
    d->state.clock = now;
    return save(d);
}

static int in_time(const cw_device *d, int64_t now) { return floor_mod(now, d->plan->period_ms) < d->plan->late_ms; }

int cw_begin(cw_device *d, int64_t now, int pause) {
    int64_t slot = floor_div(now, d->plan->period_ms);
    int result = 1;
    if (slot <= d->handled || !in_time(d, now)) return cw_checkpoint(d, now);
    d->handled = slot;
    d->taken = 0;
    if (pause) return CW_SPENT;
    if (slot > d->promised) result = reserve(d, slot, now);
    if (result < 0) return result;
    d->taken = (uint8_t)result;
    return result ? CW_TAKE : CW_SPENT;
}

int cw_cloak(cw_device *d, const int64_t *numerator, int64_t time, char message[CW_MESSAGE_BYTES]) {
    const cw_plan *plan = d->plan;
    uint32_t counter = d->next;
    int64_t value;
    if (!d->taken || counter >= d->state.counter) return CW_NOT_RESERVED;
    d->taken = 0;
    d->next++;
    int64_t seq = (int64_t)plan->generation << COUNTER_BITS | counter;
    if (draw(d, (uint64_t)seq, &value)) return CW_NO_RANDOM;
    value += numerator ? in_steps(plan, d->port->denominator, *numerator) : plan->fallback;
    write_reading(seq, time, plan->values ? floor_mod(value, plan->values) : value, message);
    return 0;
}

void cw_status(cw_device *d, const char *state, char message[CW_MESSAGE_BYTES]) {
    writer w = {message, 0};
    int64_t slot = floor_div(d->time, d->plan->period_ms), allowed = d->plan->allowed;
    put(&w, "{\"v\":1,\"state\":\""), put(&w, d->plan->bench && state == STATES[ONLINE] ? "bench" : state);
    put(&w, "\",\"used\":"), put_number(&w, is_blocked(d, d->time) ? allowed : used(d, slot));
    put(&w, ",\"allowed\":"), put_number(&w, allowed), put(&w, "}");
}

/* A reading of this sensor that this device did not send: 1 if it moves past it, 0 if it need not, or why it stops. */
int cw_heard(cw_device *d, const char *message, size_t size, int retained, int64_t now) {
    int64_t seq = read_seq(message, size), own = d->plan->generation, generation = seq >> COUNTER_BITS;
    uint32_t counter = (uint32_t)seq & LARGEST_COUNTER, start = d->state.counter;
    if (seq < 0) return 0;
    if (generation > own) return CW_NEWER;
    if (generation < own && (d->state.counter || d->state.blocked)) return 0;
    if (generation == own) {
        int blocked = is_blocked(d, now);
        if (counter < start && blocked) return 0; /* the counter is already past this reading */
        if (!retained || blocked) return CW_COPY_RUNS;
        if (counter > start && counter - start > FARTHEST) return CW_FAR_AHEAD;
        if (counter >= start) start = counter + 1;
    }
    use_epoch(d, start / EPOCH);
    d->state.blocked = floor_div(now, d->plan->period_ms) + d->plan->window_slots + 1;
    d->promised = -1;
    d->next = start;
    int failed = save_counter(d, start, now);
    return failed ? failed : 1;
}

int cw_hold(cw_device *d, int64_t amount) {
    d->time -= most(0, amount);
    int64_t now = cw_now(d);
    if (now >= d->state.clock) return 0;
    d->state.clock = now;
    return save(d);
}

/* ---- what a board that was built wrong must not pass ---- */

static int is_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t size = name ? strspn(name, letters) : 0;
    return size > 0 && size <= LONGEST_NAME && !name[size];
}

static int check_plan(const cw_plan *p) {
    static const char label[] = "cloakwork/v1/plan";
    sha s;
    uint8_t digest[32];
    if (p->version != CW_VERSION || !is_name(p->site) || !is_name(p->sensor) || p->levels > CW_MOST_LEVELS)
        return CW_BAD_PLAN;
    const uint64_t numbers[] = {
        p->version, p->generation, p->bench, p->together, p->keyed, p->step, p->step_shift, p->resolution,
        p->resolution_shift, (uint64_t)p->fallback, (uint64_t)p->values, (uint64_t)p->period_ms,
        (uint64_t)p->offset_ms, (uint64_t)p->late_ms, (uint64_t)p->clock_ms, (uint64_t)p->window_slots,
        (uint64_t)p->allowed, (uint64_t)p->block, p->levels};
    sha_start(&s);
    sha_add(&s, label, sizeof label);
    sha_add_name(&s, p->site);
    sha_add_name(&s, p->sensor);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) sha_add_number(&s, numbers[k]);
    sha_add(&s, p->noise_digest, 32);
    sha_end(&s, digest);
    if (memcmp(digest, p->check, 32)) return CW_BAD_PLAN;
    if (p->generation > LARGEST_GENERATION || !p->step || p->step >> 63 || p->resolution >> 63 ||
        p->step_shift > MOST_SHIFT || p->resolution_shift > MOST_SHIFT || p->values < 0 || p->values > MOST_STEPS ||
        p->fallback < -MOST_STEPS || p->fallback > MOST_STEPS || p->period_ms < 1 || p->period_ms > MOST_STEPS ||
        p->window_slots < 1 || p->window_slots > MOST_STEPS || p->allowed < 0 || p->allowed > MOST_STEPS ||
        p->block < 1 || p->block > EPOCH || p->late_ms < 1 || p->late_ms > p->period_ms || p->offset_ms < 0 ||
        p->offset_ms > p->period_ms || p->clock_ms < 0)
        return CW_BAD_PLAN;
    return 0;
}

static int check_table(const cw_plan *p) {
    sha s;
    uint8_t digest[32];
    int64_t largest = MOST_STEPS;
    uint64_t total = 0;
    sha_start(&s);
    for (uint32_t k = 0; k < p->levels; k++) {
        int64_t factor = p->level[k].factor;
        if (factor < 1 || !p->level[k].count || factor > LARGEST / p->level[k].count) return CW_BAD_TABLE;
        largest += factor * p->level[k].count;
        total += p->level[k].count;
        sha_add_number(&s, (uint64_t)factor);
        sha_add_number(&s, p->level[k].count);
    }
    for (uint64_t k = 0; k < total; k++) {
        uint8_t bytes[16];
        for (int j = 0; j < 4; j++) store_number(bytes + 4 * j, p->cuts[k][j], 4);
        sha_add(&s, bytes, 16);
    }
    sha_end(&s, digest);
    return !p->levels || largest > LARGEST || memcmp(digest, p->noise_digest, 32) ? CW_BAD_TABLE : 0;
}

/* Whether the plan covers the step of the hardware, which the constant denominator of readings must not exceed. */
static int check_resolution(const cw_plan *p, int64_t denominator) {
    uint32_t covered[8], one[8];
    if (!p->resolution) return CW_UNSTATED;
    if (denominator < 1) return CW_COARSE;
    wide_product(covered, p->resolution, (uint64_t)denominator);
    wide_product(one, 1, 1);
    wide_shift(one, p->resolution_shift);
    wide_less(covered, one);
    return covered[7] >> 31 ? CW_COARSE : 0;
}

int cw_open(cw_device *d, const cw_plan *plan, const cw_port *port) {
    uint8_t words[16];
    memset(d, 0, sizeof *d);
    d->plan = plan;
    d->port = port;
    int problem = check_plan(plan);
    if (!problem) problem = check_table(plan);
    if (!problem) problem = check_resolution(plan, port->denominator);
    if (!problem) problem = load(d);
    if (!problem && plan->keyed != d->state.keyed) problem = CW_NO_KEY;
    if (!problem && !plan->keyed) problem = board_words(d, words, 1);
    d->error = problem;
    if (problem) return problem;
    memcpy(d->key, d->state.key, CW_KEY_BYTES);
    d->ticks = port->ticks(port->context);
    d->time = d->send_at = d->state.clock;
    d->handled = last_slot(d);
    d->promised = d->asked = d->echoed = -1;
    d->next = d->first_counter = d->state.counter;
    d->epoch = d->state.counter / EPOCH;
    d->starting = 1;
    return 0;
}

/* ---- the loop (station.py, session.py, measuring.py) ---- */

static int64_t unix_ms(const cw_device *d) { return d->port->unix_ms ? d->port->unix_ms(d->port->context) : 0; }

/* Whether a reading may be measured now, for the slot that began at `start` and has the Unix time `time`. */
static int may_read(cw_device *d, int64_t start, int64_t time) {
    int64_t now = cw_now(d);
    if (now - start >= d->plan->period_ms || !in_time(d, now)) return 0;
    if (!d->plan->together) return 1;
    int64_t since = unix_ms(d) - time;
    return since >= 0 && since < d->plan->late_ms;
}

/* Align slots to multiples of the period in Unix time. The clock is only ever held back. */
static int align(cw_device *d) {
    int64_t before = cw_now(d), unix_now = unix_ms(d), taken = cw_now(d) - before; /* long where it was interrupted */
    int64_t period = d->plan->period_ms, late = d->plan->late_ms;
    if (taken > period / 2) return 0; /* what follows would be a guess: the next slot decides */
    int64_t ahead = floor_mod(before - unix_now, period);
    int64_t tolerated = d->aligned ? least(late - 1, 2 + late / 8) : 0;
    d->aligned = unix_now != 0;
    if (!unix_now || !ahead || (ahead > period / 2 && period - ahead - taken <= tolerated)) return 0;
    return cw_hold(d, ahead);
}

static void send_after(cw_device *d, int64_t start) {
    int64_t now = cw_now(d);
    d->send_at = start + d->plan->offset_ms;
    while (d->send_at < now) d->send_at += d->plan->period_ms;
}

/* What the status says about measuring: judged in blocks of 16 slots, so that it follows no single failure. */
static void judge(cw_device *d, uint8_t state) {
    d->count++;
    if (state == SKIPPING) d->skipped++;
    else if (state != ONLINE) d->failures++, d->reason = state;
    uint8_t found = d->skipped > 1 ? SKIPPING : ONLINE;
    if (d->failures > 3) found = d->reason;
    if (d->count == 16 || (d->starting && found != ONLINE)) d->health = found;
    if (d->count == 16) d->starting = d->count = d->failures = d->skipped = 0;
}

static int finish(cw_device *d, const int64_t *numerator, uint8_t state) {
    if (!d->measuring) return CW_NOT_RESERVED;
    d->measuring = 0;
    if (!may_read(d, d->slot_start, d->slot_time)) numerator = NULL, state = SLOW;
    judge(d, state);
    if (d->kept_count == CW_KEPT) memmove(d->kept[0], d->kept[1], sizeof d->kept[0] * --d->kept_count);
    int problem = cw_cloak(d, numerator, d->slot_time, d->kept[d->kept_count]);
    if (problem) return d->error = problem;
    d->kept_count++;
    d->spent = 0;
    send_after(d, d->slot_start);
    return 0;
}

int cw_measured(cw_device *d, int64_t numerator) { return finish(d, &numerator, ONLINE); }
int cw_failed(cw_device *d, int invalid) { return finish(d, NULL, invalid ? INVALID : FAILING); }

static int is_ready(const cw_device *d) { return d->linked && d->echoed >= 0 && d->time - d->echoed >= GRACE; }

void cw_link(cw_device *d, int up) {
    if (d->linked == (up != 0)) return;
    d->linked = up != 0;
    d->asked = d->echoed = -1;
    d->status[0] = 0;
}

/* Whether this device made a message, in this run or, by its number, in an earlier one. */
static int is_own(const cw_device *d, const char *message, size_t size, int64_t seq) {
    if (seq >> COUNTER_BITS != d->plan->generation) return 0;
    if (((uint64_t)seq & LARGEST_COUNTER) < d->first_counter || seq < read_seq(d->last, strlen(d->last))) return 1;
    if (strlen(d->last) == size && !memcmp(d->last, message, size)) return 1;
    for (uint32_t k = 0; k < d->kept_count; k++)
        if (strlen(d->kept[k]) == size && !memcmp(d->kept[k], message, size)) return 1;
    return 0;
}

void cw_receive(cw_device *d, const char *topic, const char *message, size_t size) {
    char own[CW_TOPIC_BYTES];
    if (d->error || !d->linked) return;
    cw_topic(d->plan, 1, own);
    if (!strcmp(topic, own) && d->asked >= 0 && d->echoed < 0) d->echoed = d->time;
    cw_topic(d->plan, 0, own);
    if (strcmp(topic, own)) return;
    int64_t seq = read_seq(message, size);
    if (seq < 0 || is_own(d, message, size, seq) || seq <= read_seq(d->foreign, strlen(d->foreign))) return;
    /* what arrives before the device is ready is what the broker has retained */
    d->foreign_live = (uint8_t)(d->foreign_live | is_ready(d));
    memcpy(d->foreign, message, size);
    d->foreign[size] = 0;
}

static int publish(cw_device *d, int status, const char *message) {
    char topic[CW_TOPIC_BYTES];
    cw_topic(d->plan, status, topic);
    return d->port->publish(d->port->context, topic, message);
}

static void publish_status(cw_device *d) {
    char message[CW_MESSAGE_BYTES];
    cw_status(d, d->spent && d->health == ONLINE ? "spent" : STATES[d->health], message);
    if (strcmp(message, d->status) && !publish(d, 1, message)) memcpy(d->status, message, sizeof message);
}

/* Hear what the broker knows, then send what is kept. */
static int serve(cw_device *d, int64_t now) {
    if (d->foreign[0]) {
        /* a backup is restored only once: a device that falls behind the broker again has a running copy */
        int moved = cw_heard(d, d->foreign, strlen(d->foreign), !d->foreign_live && !d->moved, now);
        if (moved) d->moved = 1, d->kept_count = 0; /* also if the storage fails: what is kept may repeat numbers */
        if (moved < 0) return moved;
        d->foreign[0] = 0;
        d->foreign_live = 0;
    }
    if (d->linked && d->asked >= 0 && d->echoed < 0 && now - d->asked > PATIENCE) d->asked = -1, d->status[0] = 0;
    if (d->linked && d->asked < 0) {
        d->asked = now; /* before it leaves: it may come back at once */
        publish_status(d);
        if (!d->status[0]) d->asked = d->echoed = -1;
    }
    if (!is_ready(d)) return 0;
    d->checked = 1;
    for (int sent = 0; sent < IN_FLIGHT && d->kept_count && !publish(d, 0, d->kept[0]); sent++) {
        memcpy(d->last, d->kept[0], sizeof d->last);
        memmove(d->kept[0], d->kept[1], sizeof d->kept[0] * --d->kept_count);
    }
    publish_status(d);
    return 0;
}

/* Begin a slot if one is due. */
static int slot(cw_device *d) {
    const cw_plan *plan = d->plan;
    int64_t period = plan->period_ms, unix_now = unix_ms(d);
    if (!d->state.counter && !d->checked) return CW_WAIT; /* first hear what the broker knows of this sensor */
    if (plan->together && !unix_now) return CW_WAIT;
    int failed = align(d);
    if (failed) return failed;
    int64_t now = cw_now(d), start = now - floor_mod(now, period), time = 0;
    unix_now = unix_ms(d);
    if (unix_now) time = floor_div(unix_now - (cw_now(d) - start) + period / 2, period) * period;
    if (!may_read(d, start, time) || (plan->together && time <= d->stamped)) return cw_checkpoint(d, now);
    int pause = time && plan->allowed && floor_mod(floor_div(time, period), plan->window_slots) >= plan->allowed;
    int verdict = cw_begin(d, now, pause);
    if (verdict == CW_SPENT) {
        d->spent = 1;
        send_after(d, start);
    }
    if (verdict != CW_TAKE) return verdict < 0 ? verdict : CW_WAIT;
    if (!may_read(d, start, time)) { /* the storage was slow: this slot stays empty */
        judge(d, SKIPPING);
        d->spent = 0;
        send_after(d, start);
        return CW_WAIT;
    }
    d->stamped = d->slot_time = time;
    d->slot_start = start;
    d->measuring = 1;
    return CW_MEASURE;
}

int cw_step(cw_device *d) {
    int result = CW_WAIT;
    if (d->error) return d->error;
    int64_t now = cw_now(d), period = d->plan->period_ms;
    d->wait = 1;
    if (d->measuring) {
        if (may_read(d, d->slot_start, d->slot_time)) return CW_WAIT;
        result = finish(d, NULL, SLOW);
    } else if (now >= d->send_at) {
        result = serve(d, now);
        if (result >= 0) result = slot(d);
    }
    if (result < 0 && result != CW_STORAGE) d->error = result;
    now = cw_now(d);
    int64_t due = period - floor_mod(now, period);
    if (now < d->send_at) due = least(due, d->send_at - now - 1);
    d->wait = (uint32_t)most(0, least(due, LONGEST_WAIT));
    return result;
}

int cw_may_ask(const cw_device *d) {
    int64_t period = d->plan->period_ms;
    return !d->measuring && d->time >= d->send_at && period - floor_mod(d->time, period) >= least(1000, period / 4);
}

const char *cw_text(int result) {
    switch (result) {
    case CW_BAD_PLAN: return "plan.h is damaged, was edited, or belongs to another version. Provision this device again.";
    case CW_BAD_TABLE: return "the noise table is damaged, or not the one of this plan. Provision this device again.";
    case CW_NO_STATE: return "no copy of the state belongs to this device and is whole, so noise might be used twice. "
                             "Provision this device again: it gets a new key and a new counter.";
    case CW_CONTRADICTION: return "the two copies of the state contradict each other. Provision this device again.";
    case CW_NO_KEY: return "the plan and the state disagree about a key. Provision this device again.";
    case CW_UNSTATED: return "the plan does not account for the step in which the hardware reads. Set resolution in "
                             "the site file, then plan and provision again.";
    case CW_COARSE: return "the denominator stands for coarser steps than the resolution in the site file.";
    case CW_STORAGE: return "the storage did not take the state: this slot stays empty.";
    case CW_NUMBERS_USED: return "all numbers of this provisioning are used. Provision this device again.";
    case CW_COPY_RUNS: return "a copy of this device runs elsewhere. Stop both, and provision it again.";
    case CW_FAR_AHEAD: return "the broker knows readings far ahead of this counter. Provision this device again.";
    case CW_NEWER: return "this sensor was provisioned again later: use the newer folder.";
    case CW_NO_RANDOM: return "there is no good random generator. Provision this device with a key.";
    case CW_NOT_RESERVED: return "no number is reserved for another reading.";
    default: return "";
    }
}

/* ---- the time (sntp.py) ---- */

static int64_t time_now(cw_time *t, uint32_t ticks) {
    uint32_t elapsed = ticks - t->ticks;
    t->ticks = ticks;
    if (!(elapsed >> 31)) t->now += elapsed;
    return t->now;
}

void cw_time_open(cw_time *t, int64_t allowed, uint32_t ticks) {
    memset(t, 0, sizeof *t);
    t->allowed = allowed;
    t->ticks = ticks;
    t->pause = 2000;
}

static int64_t widened(const cw_time *t) { return (t->now - t->since) / DRIFT + 1; }
static int64_t half_width(int64_t low, int64_t high) { return (high - low + 1) / 2 + 1; }

int64_t cw_time_unix(cw_time *t, uint32_t ticks) {
    int64_t now = time_now(t, ticks), wider = widened(t);
    if (!t->known || t->doubted || half_width(t->low - wider, t->high + wider) > t->allowed) return 0;
    return now + floor_div(t->low + t->high, 2);
}

void cw_time_drop(cw_time *t) { t->waiting = 0; }

int cw_time_serve(cw_time *t, uint32_t ticks, int ask, const uint8_t nonce[8], uint8_t packet[CW_TIME_BYTES]) {
    int64_t now = time_now(t, ticks);
    if (t->waiting) {
        if (now - t->sent > 1000) t->waiting = 0;
        return 0;
    }
    if (!ask || now < t->next) return 0;
    t->next = now + t->pause;
    t->pause = least(2 * t->pause, 64000);
    t->sent = now;
    t->waiting = 1;
    memcpy(t->nonce, nonce, 8);
    memset(packet, 0, CW_TIME_BYTES);
    packet[0] = 0x23; /* version 4, client; an answer must repeat the nonce */
    memcpy(packet + 40, nonce, 8);
    return 1;
}

/* Unix milliseconds of a time stamp of NTP, from 2024 to 2160. */
static int64_t milliseconds(const uint8_t stamp[8]) {
    uint32_t since_2024 = load_word(stamp) - 3913056000u;
    return (since_2024 + INT64_C(1704067200)) * 1000 + (int64_t)((uint64_t)load_word(stamp + 4) * 1000 >> 32);
}

int cw_time_answer(cw_time *t, uint32_t ticks, const uint8_t *packet, size_t size) {
    int64_t now = time_now(t, ticks), wider = widened(t), longest = 1024000;
    if (!t->waiting || size < CW_TIME_BYTES || (packet[0] & 7) != 4 || memcmp(packet + 24, t->nonce, 8)) return -1;
    t->waiting = 0;
    if (!packet[1]) { /* the server refuses this device */
        t->next = now + longest;
        t->pause = longest;
        return -1;
    }
    if (packet[0] >> 6 == 3 || packet[1] > 15) return -1;
    int64_t received = milliseconds(packet + 32), answered = milliseconds(packet + 40);
    uint64_t stated = (uint64_t)(load_word(packet + 4) / 2) + load_word(packet + 8);
    int64_t error = (int64_t)(stated * 1000 >> 16) + 2; /* and whole milliseconds on both sides */
    int64_t low = answered - now - error, high = received - t->sent + error;
    if (answered < received || low > high) return -1;
    if (t->known) {
        int64_t lowest = t->low - wider, highest = t->high + wider;
        /* the answer contradicts the own oscillator: do not measure until they agree */
        if (low > highest || high < lowest || (t->doubted && (low < lowest || high > highest))) {
            t->doubted = 1;
            return -1;
        }
        low = most(low, lowest);
        high = least(high, highest);
    }
    t->known = 1;
    t->doubted = 0;
    t->low = low;
    t->high = high;
    t->since = now;
    error = half_width(low, high);
    if (2 * error <= t->allowed) {
        t->next = now + least(longest, most(16000, t->allowed * DRIFT / 4));
        t->pause = 2000;
    }
    return error <= t->allowed;
}
