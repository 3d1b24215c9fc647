#pragma once

#include "esphome/components/sensor/sensor.h"
#include "esphome/core/component.h"
#include "esphome/core/helpers.h"

#include "cloakwork.h"

namespace esphome::cloakwork {

/// Measures with another sensor in the slots of the plan, cloaks the reading, and publishes only that.
class CloakworkSensor : public sensor::Sensor, public Component {
 public:
  void set_source(sensor::Sensor *source, PollingComponent *poller) {
    this->source_ = source;
    this->poller_ = poller;
  }
  void setup() override;
  void loop() override;
  void dump_config() override;
  float get_setup_priority() const override { return setup_priority::AFTER_WIFI; }

 protected:
  static int read_block(void *self, int copy, uint8_t *data, size_t room);
  static int write_block(void *self, int copy, const uint8_t *data, size_t size);
  static uint32_t ticks(void *self);
  static int64_t unix_ms(void *self);
  static int publish(void *self, const char *topic, const char *message);
  static int random(void *self, uint8_t *bytes, size_t count);

  void measured_(float value);
  void keep_time_();
  bool open_time_server_();
  bool is_linked_();
  void fail_(int result);

  sensor::Sensor *source_{nullptr};
  PollingComponent *poller_{nullptr};
  HighFrequencyLoopRequester often_;
  cw_port port_{};
  cw_device device_{};
  cw_time time_{};
  int socket_{-1};
  int stale_{0};  // for how many slots the next value still belongs to one that is over; then it counts as lost
};

}  // namespace esphome::cloakwork
