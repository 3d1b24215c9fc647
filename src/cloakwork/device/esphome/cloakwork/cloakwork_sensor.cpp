#include "cloakwork_sensor.h"
#include "plan.h"

#include "esphome/core/hal.h"
#include "esphome/core/log.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef USE_ESP32
#include "esphome/components/mqtt/mqtt_client.h"
#include <nvs.h>
#endif

namespace esphome::cloakwork {

static const char *const TAG = "cloakwork";
static const char *const COPIES[] = {"state.0", "state.1"};
static const int SHIFT = 40;  // a float of 2^-17 or more is a whole number of 2^-40, so nothing is rounded

static CloakworkSensor *as_sensor(void *self) { return static_cast<CloakworkSensor *>(self); }

void CloakworkSensor::setup() {
  this->port_ = {this,  read_block, write_block, ticks, unix_ms, publish, CW_PLAN.keyed ? nullptr : random,
                 INT64_C(1) << SHIFT};
  cw_time_open(&this->time_, CW_PLAN.together ? CW_PLAN.clock_ms : INT64_C(1) << 40, millis());
  int result = cw_open(&this->device_, &CW_PLAN, &this->port_);
  if (result != 0) {
    this->fail_(result);
    return;
  }
  if (CW_PLAN.late_ms < 50)  // the loop usually runs every 16 ms
    this->often_.start();
  this->source_->add_on_state_callback([this](float value) { this->measured_(value); });
#ifdef USE_ESP32
  for (int status = 0; status < 2; status++) {  // the readings first: what the broker has retained comes before the echo
    char topic[CW_TOPIC_BYTES];
    cw_topic(&CW_PLAN, status, topic);
    mqtt::global_mqtt_client->subscribe(
        topic,
        [this](const std::string &from, const std::string &message) {
          cw_receive(&this->device_, from.c_str(), message.data(), message.size());
        },
        1);
  }
#endif
}

void CloakworkSensor::loop() {
  cw_link(&this->device_, this->is_linked_());
  bool measuring = this->device_.measuring;
  int result = cw_step(&this->device_);
  if (measuring && !this->device_.measuring)
    this->stale_ = 16;
  if (result == CW_MEASURE) {
    cw_time_drop(&this->time_);
    if (this->stale_ > 0) {  // an answer is still due, and must not count for this slot: send the baseline
      this->stale_--;
      result = cw_failed(&this->device_, 0);
      if (result < 0)
        this->fail_(result);
    } else {
      this->poller_->update();
    }
  } else if (result == CW_STORAGE) {
    ESP_LOGW(TAG, "%s", cw_text(result));
  } else if (result < 0) {
    this->fail_(result);
  } else {
    this->keep_time_();
  }
}

void CloakworkSensor::dump_config() {
  ESP_LOGCONFIG(TAG, "Cloakwork: %s/%s, generation %u", CW_PLAN.site, CW_PLAN.sensor, (unsigned) CW_PLAN.generation);
}

void CloakworkSensor::measured_(float value) {
  if (this->stale_ > 0 || !this->device_.measuring) {
    this->stale_ = 0;
    return;
  }
  const double most = std::ldexp(1.0, 62);
  double scaled = std::rint(std::ldexp(static_cast<double>(value), SHIFT));
  int result = std::isnan(value) ? cw_failed(&this->device_, 1)
                                 : cw_measured(&this->device_, static_cast<int64_t>(clamp(scaled, -most, most)));
  if (result < 0)
    this->fail_(result);
}

// Ask the time server between the sending of a reading and the next slot, as long as nothing is measured.
void CloakworkSensor::keep_time_() {
  uint8_t packet[CW_TIME_BYTES], nonce[8];
  if (this->socket_ >= 0) {
    ssize_t size = recv(this->socket_, packet, sizeof packet, MSG_DONTWAIT);
    if (size > 0)
      cw_time_answer(&this->time_, millis(), packet, static_cast<size_t>(size));
  }
  if (!this->is_linked_() || !cw_may_ask(&this->device_) || !random_bytes(nonce, sizeof nonce))
    return;
  bool reachable = this->socket_ >= 0 && cw_time_unix(&this->time_, millis()) != 0;
  // looking up a name may take seconds: not while the time is good, and before the request leaves
  if (!reachable && !this->time_.waiting && this->time_.now >= this->time_.next)
    reachable = this->open_time_server_();
  if (cw_time_serve(&this->time_, millis(), 1, nonce, packet) && reachable)
    send(this->socket_, packet, sizeof packet, MSG_DONTWAIT);
}

// Connect to the server: the system then drops packets from any other address.
bool CloakworkSensor::open_time_server_() {
  struct addrinfo hints {}, *found = nullptr;
  char port[8];
  if (this->socket_ >= 0)
    close(this->socket_);
  this->socket_ = -1;
  snprintf(port, sizeof port, "%d", CW_TIME_PORT);
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(CW_TIME_HOST, port, &hints, &found) != 0)
    return false;
  this->socket_ = socket(found->ai_family, SOCK_DGRAM, 0);
  if (this->socket_ >= 0 && connect(this->socket_, found->ai_addr, found->ai_addrlen) != 0) {
    close(this->socket_);
    this->socket_ = -1;
  }
  freeaddrinfo(found);
  return this->socket_ >= 0;
}

void CloakworkSensor::fail_(int result) {
  ESP_LOGE(TAG, "%s", cw_text(result));
  this->mark_failed();
}

uint32_t CloakworkSensor::ticks(void *self) { return (void) self, millis(); }

int64_t CloakworkSensor::unix_ms(void *self) { return cw_time_unix(&as_sensor(self)->time_, millis()); }

int CloakworkSensor::random(void *self, uint8_t *bytes, size_t count) {
  (void) self;
#if defined(USE_ESP32) && defined(USE_WIFI)  // its maker vouches for the generator while a radio is on
  return random_bytes(bytes, count) ? 0 : -1;
#else
  return (void) bytes, (void) count, -1;
#endif
}

int CloakworkSensor::publish(void *self, const char *topic, const char *message) {
  char status[CW_TOPIC_BYTES];
#ifdef USE_ESP32
  if (!mqtt::global_mqtt_client->publish(topic, message, strlen(message), 1, true))
    return -1;
#else  // a simulated board: messages go to standard output, and come back as from a broker
  printf("%s %s\n", topic, message);
  fflush(stdout);
  cw_receive(&as_sensor(self)->device_, topic, message, strlen(message));
#endif
  cw_topic(&CW_PLAN, 1, status);
  if (strcmp(topic, status) != 0) {
    double steps = static_cast<double>(strtoll(strrchr(message, ':') + 1, nullptr, 10));
    double step = std::ldexp(static_cast<double>(CW_PLAN.step), -static_cast<int>(CW_PLAN.step_shift));
    as_sensor(self)->publish_state(static_cast<float>(steps * step));
  }
  return 0;
}

#ifdef USE_ESP32
bool CloakworkSensor::is_linked_() { return mqtt::global_mqtt_client->is_connected(); }

int CloakworkSensor::read_block(void *self, int copy, uint8_t *data, size_t room) {
  (void) self;
  nvs_handle_t handle;
  if (nvs_open("cloakwork", NVS_READONLY, &handle) != ESP_OK)
    return -1;
  bool found = nvs_get_blob(handle, COPIES[copy], data, &room) == ESP_OK;
  nvs_close(handle);
  return found ? static_cast<int>(room) : -1;
}

int CloakworkSensor::write_block(void *self, int copy, const uint8_t *data, size_t size) {
  (void) self;
  nvs_handle_t handle;
  if (nvs_open("cloakwork", NVS_READWRITE, &handle) != ESP_OK)
    return -1;
  bool stored = nvs_set_blob(handle, COPIES[copy], data, size) == ESP_OK && nvs_commit(handle) == ESP_OK;
  nvs_close(handle);
  return stored ? 0 : -1;
}
#else
bool CloakworkSensor::is_linked_() { return true; }

int CloakworkSensor::read_block(void *self, int copy, uint8_t *data, size_t room) {
  (void) self;
  int file = open(COPIES[copy], O_RDONLY);
  ssize_t size = file < 0 ? -1 : read(file, data, room);
  if (file >= 0)
    close(file);
  return static_cast<int>(size);
}

int CloakworkSensor::write_block(void *self, int copy, const uint8_t *data, size_t size) {
  (void) self;
  int file = open(COPIES[copy], O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0)
    return -1;
  bool stored = write(file, data, size) == static_cast<ssize_t>(size) && fsync(file) == 0;
  return close(file) == 0 && stored ? 0 : -1;
}
#endif

}  // namespace esphome::cloakwork
