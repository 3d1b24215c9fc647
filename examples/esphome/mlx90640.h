#pragma once
// The mean of the middle 8 x 8 pixels of an MLX90640, measured anew in each call; not a number if the chip does not answer.
#include <Adafruit_MLX90640.h>
#include <cmath>

inline float mlx90640_mean() {
  static Adafruit_MLX90640 chip;
  static float frame[32 * 24];
  static bool ready = Wire.begin(21, 22, 400000) && chip.begin(MLX90640_I2CADDR_DEFAULT, &Wire);
  if (!ready)
    return NAN;
  chip.setRefreshRate(MLX90640_16_HZ);
  // the chip holds its last picture: throw it away, so that the reading is of this slot
  if (chip.getFrame(frame) != 0 || chip.getFrame(frame) != 0)
    return NAN;
  float sum = 0;
  for (int row = 8; row < 16; row++) {
    for (int column = 12; column < 20; column++)
      sum += frame[32 * row + column];
  }
  return sum / 64;
}
