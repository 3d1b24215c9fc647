"""Measure with a thermal array (Panasonic AMG8833, 8 x 8 pixels) on an ESP32 with MicroPython.

Put this file in place of measure.py in a folder that `cloakwork provision` wrote, fill in the network, and copy the
folder onto the board. State resolution = 0.25 in the site file: each pixel is rounded to quarters of a degree. The
reading is the mean of the 64 pixels in degrees Celsius, an exact fraction.
"""

import time

import machine
import network

from cloakwork.sensor.exact import mean

NAME = "your network"
PASSWORD = "its password"  # noqa: S105 - to be filled in
ADDRESS = 0x69
PIXELS = 0x80  # the first of 64 registers of two bytes each: twelve bits with a sign, in quarters of a degree

bus = machine.I2C(0, scl=machine.Pin(22), sda=machine.Pin(21), freq=400000)


def connect() -> None:
    """Join the network; the device then asks the time server, and measures once it knows the time well enough."""
    radio = network.WLAN(network.STA_IF)
    radio.active(True)
    radio.connect(NAME, PASSWORD)
    for _ in range(60):
        if radio.isconnected():
            return
        time.sleep(1)
    print("there is no network yet; the board keeps trying")


def read() -> tuple[int, int]:
    """The mean of all pixels, as a fraction of degrees."""
    return mean(pixels(), (1, 4))


def pixels() -> list[int]:
    """All pixels in quarters of a degree."""
    time.sleep_ms(100)  # the chip renews its pixels ten times a second: now none is from before this call
    raw = bus.readfrom_mem(ADDRESS, PIXELS, 128)
    quarters = [(raw[k] | raw[k + 1] << 8) & 0xFFF for k in range(0, 128, 2)]
    return [q - 4096 if q & 0x800 else q for q in quarters]


connect()
