/* The device side of Cloakwork in C99, without heap: noise, keystream, counter, budget, slots and messages.
 *
 * Equal to the bit to the Python package cloakwork.sensor: the same state files, messages and decisions. plan.h, which
 * `cloakwork provision` writes, holds the plan of one device. A program fills in a cw_port, calls cw_open once and
 * cw_step in a loop; main.c is an example.
 */
#ifndef CLOAKWORK_H
#define CLOAKWORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CW_VERSION 1
#define CW_KEY_BYTES 32
#define CW_MOST_RUNS 32
#define CW_MOST_LEVELS 8
#define CW_STATE_BYTES 2048  /* room for one copy of the state */
#define CW_MESSAGE_BYTES 97  /* a message has at most 96, and a zero */
#define CW_TOPIC_BYTES 160
#define CW_TIME_BYTES 48     /* a packet of the time server */
#ifndef CW_KEPT
#define CW_KEPT 16           /* messages kept in memory while the broker is away */
#endif

/* Results. Everything below 0 means that nothing may be sent; cw_text says why. */
enum {
    CW_WAIT = 0,          /* nothing to do for device.wait milliseconds */
    CW_MEASURE = 1,       /* measure now, then call cw_measured or cw_failed */
    CW_TAKE = 2,
    CW_SPENT = 3,
    CW_BAD_PLAN = -1,
    CW_BAD_TABLE = -2,
    CW_NO_STATE = -3,
    CW_CONTRADICTION = -4,
    CW_NO_KEY = -5,
    CW_UNSTATED = -6,
    CW_COARSE = -7,
    CW_STORAGE = -8,      /* a write failed: it costs a slot, and the device may go on */
    CW_NUMBERS_USED = -9,
    CW_COPY_RUNS = -10,
    CW_FAR_AHEAD = -11,
    CW_NEWER = -12,
    CW_NO_RANDOM = -13,
    CW_NOT_RESERVED = -14
};

typedef struct {
    int64_t factor;
    uint32_t count;            /* cut points */
} cw_level;

/* What one device was provisioned with. Constant: it can stay in flash. */
typedef struct {
    const char *site, *sensor;
    uint32_t version;
    uint32_t generation;
    uint8_t bench, together, keyed;
    uint64_t step;             /* the step is step / 2^step_shift of the unit */
    uint32_t step_shift;
    uint64_t resolution;       /* likewise; 0 if the site file states none */
    uint32_t resolution_shift;
    int64_t fallback;          /* the baseline in steps */
    int64_t values;            /* 0, or the number of values of a discrete sensor */
    int64_t period_ms, offset_ms, late_ms, clock_ms, window_slots, allowed, block;
    uint32_t levels;
    uint8_t noise_digest[32];
    uint8_t check[32];         /* SHA-256 of all of the above */
    const cw_level *level;
    const uint32_t (*cuts)[4]; /* of all levels in a row, each from its highest word to its lowest */
} cw_plan;

/* What the board does for the device. `context` is passed to every call. */
typedef struct {
    void *context;
    /* Read copy 0 or 1 of the state; returns its bytes, or -1 if there is none. */
    int (*read_block)(void *context, int copy, uint8_t *data, size_t room);
    /* Write a copy; returns 0 only once it is durable. */
    int (*write_block)(void *context, int copy, const uint8_t *data, size_t size);
    /* Milliseconds of an oscillator that no one can advance; may wrap. Asked at least once a day. */
    uint32_t (*ticks)(void *context);
    /* Unix milliseconds, or 0 unless they are known to within plan.clock_ms (cw_time does that). */
    int64_t (*unix_ms)(void *context);
    /* Send a retained message with QoS 1; returns 0 if the client has accepted it. */
    int (*publish)(void *context, const char *topic, const char *message);
    /* Fill with random bytes, returns 0; NULL on boards whose generator is not good enough for noise. */
    int (*random)(void *context, uint8_t *bytes, size_t count);
    /* A reading is a whole number over this constant, in the unit of the site. */
    int64_t denominator;
} cw_port;

typedef struct {
    int64_t version, clock, blocked;
    uint32_t counter;
    int64_t runs[CW_MOST_RUNS + 1][2];
    uint32_t run_count;
    uint8_t keyed;
    uint8_t key[CW_KEY_BYTES];
} cw_state;

typedef struct {
    const cw_plan *plan;
    const cw_port *port;
    uint32_t wait;                              /* milliseconds until cw_step has something to do */
    int error;                                  /* why this device has stopped, or 0 */
    cw_state state;
    int first_copy;
    int64_t time, handled, promised;
    uint32_t ticks, counted, next, epoch;
    uint8_t key[CW_KEY_BYTES];
    uint8_t taken, has_stream;
    uint32_t inner[8], outer[8];                /* HMAC with the stream key, after its first block */
    /* the loop */
    int64_t send_at, stamped, slot_start, slot_time, asked, echoed;
    uint32_t first_counter;
    uint8_t linked, checked, moved, measuring, aligned, spent;
    uint8_t starting, count, failures, skipped, reason, health;
    char kept[CW_KEPT][CW_MESSAGE_BYTES];
    uint32_t kept_count;
    char last[CW_MESSAGE_BYTES];                /* the last message handed over */
    char foreign[CW_MESSAGE_BYTES];             /* heard, not made here, to be judged in the next step */
    uint8_t foreign_live;
    char status[CW_MESSAGE_BYTES];              /* the last status handed over */
} cw_device;

/* Open the device; returns 0, or why it refuses to work. Both pointers must stay valid. */
int cw_open(cw_device *device, const cw_plan *plan, const cw_port *port);
/* Do what is due: CW_WAIT, CW_MEASURE, or an error. Call it again after device->wait milliseconds or earlier. */
int cw_step(cw_device *device);
/* The answers to CW_MEASURE: a reading, or none (`invalid`: the hardware returned no number). Returns 0 or an error. */
int cw_measured(cw_device *device, int64_t numerator);
int cw_failed(cw_device *device, int invalid);
/* The link to the broker. Say that it is up once both topics, data first, are subscribed. */
void cw_link(cw_device *device, int up);
/* Everything that arrives on the two topics. */
void cw_receive(cw_device *device, const char *topic, const char *message, size_t size);
/* Whether a request to the time server may leave: not while measuring, nor right before a slot. */
int cw_may_ask(const cw_device *device);
/* The topic of the readings, or of the status. */
void cw_topic(const cw_plan *plan, int status, char topic[CW_TOPIC_BYTES]);
/* A status message; `state` is one of the wire form. */
void cw_status(cw_device *device, const char *state, char message[CW_MESSAGE_BYTES]);
const char *cw_text(int result);

/* The parts, as in cloakwork.sensor.device. */
int64_t cw_now(cw_device *device);
int cw_begin(cw_device *device, int64_t now, int pause);
int cw_cloak(cw_device *device, const int64_t *numerator, int64_t time, char message[CW_MESSAGE_BYTES]);
int cw_heard(cw_device *device, const char *message, size_t size, int retained, int64_t now);
int cw_hold(cw_device *device, int64_t amount);
int cw_checkpoint(cw_device *device, int64_t now);
void cw_sha256(const uint8_t *data, size_t size, uint8_t digest[32]);
void cw_hmac(const uint8_t key[CW_KEY_BYTES], const uint8_t *data, size_t size, uint8_t digest[32]);
int64_t cw_look_up(const uint32_t (*cuts)[4], uint32_t count, const uint8_t word[16]);

/* Unix time from a time server (SNTP), with a bound on its error, as in cloakwork.sensor.sntp. */
typedef struct {
    int64_t allowed, now, low, high, since, sent, next, pause;
    uint32_t ticks;
    uint8_t known, doubted, waiting;
    uint8_t nonce[8];
} cw_time;

void cw_time_open(cw_time *time, int64_t allowed, uint32_t ticks);
/* Whether `packet` must leave now; `nonce` is 8 random bytes, `ask` whether a request may leave. */
int cw_time_serve(cw_time *time, uint32_t ticks, int ask, const uint8_t nonce[8], uint8_t packet[CW_TIME_BYTES]);
/* An answer that has arrived from the server's address; returns 1 if the time is known, 0 if not well enough, or -1. */
int cw_time_answer(cw_time *time, uint32_t ticks, const uint8_t *packet, size_t size);
/* Give up the request under way: call it when cw_step returns CW_MEASURE. */
void cw_time_drop(cw_time *time);
int64_t cw_time_unix(cw_time *time, uint32_t ticks);

#ifdef __cplusplus
}
#endif
#endif
