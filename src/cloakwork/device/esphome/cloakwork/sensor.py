"""An ESPHome sensor that cloaks another one: the true reading stays inside, and a noisy one is published.

ESPHome loads this file; the C++ beside it wraps cloakwork.c. Validation refuses every setting known to us by which the
true reading could leave the device, or by which it would not be one measurement in its slot.
"""

import esphome.codegen as cg
import esphome.config_validation as cv
import esphome.final_validate as fv
from esphome.components import sensor
from esphome.const import (
    CONF_CLEAN_SESSION,
    CONF_FILTERS,
    CONF_INCLUDE_INTERNAL,
    CONF_INTERNAL,
    CONF_LEVEL,
    CONF_SOURCE,
    CONF_UPDATE_INTERVAL,
    ENTITY_CATEGORY_DIAGNOSTIC,
    SCHEDULER_DONT_RUN,
)
from esphome.core import ID, Lambda

DEPENDENCIES = ["network"]
QUIET = "NONE", "ERROR", "WARN", "INFO"
TRIGGERS = "on_value", "on_value_range", "on_raw_value"

CloakworkSensor = cg.esphome_ns.namespace("cloakwork").class_("CloakworkSensor", sensor.Sensor, cg.Component)
CONFIG_SCHEMA = cv.All(
    # a cloaked reading is for maps, not for thermostats
    sensor.sensor_schema(CloakworkSensor, entity_category=ENTITY_CATEGORY_DIAGNOSTIC)
    .extend({cv.Required(CONF_SOURCE): cv.use_id(sensor.Sensor)})
    .extend(cv.COMPONENT_SCHEMA),
    cv.only_on(["esp32", "host"]),
)


def _uses(fragment, name):
    """How often a part of the configuration refers to an id, also in lambdas."""
    if isinstance(fragment, dict):
        return sum(_uses(value, name) for value in fragment.values())
    if isinstance(fragment, (list, tuple)):
        return sum(_uses(value, name) for value in fragment)
    if isinstance(fragment, Lambda):
        return sum(used.id == name for used in fragment.requires_ids)
    return int(isinstance(fragment, ID) and fragment.id == name and not fragment.is_declaration)


def _final_validate(config):
    full = fv.full_config.get()
    own = config[CONF_SOURCE]
    source = full.get_config_for_path(full.get_path_for_id(own)[:-1])
    if not source.get(CONF_INTERNAL):
        raise cv.Invalid(f"{own}: its true readings would be published. Add internal: true, or remove its name.")
    if source.get(CONF_FILTERS):
        raise cv.Invalid(f"{own}: filters change what the plan assumes of a reading. Remove them.")
    if any(source.get(name) for name in TRIGGERS) or _uses(dict(full), own.id) != 1:
        raise cv.Invalid(f"{own}: something else uses its true readings. Only the cloakwork sensor may.")
    interval = source.get(CONF_UPDATE_INTERVAL)
    if interval is None or interval.total_milliseconds != SCHEDULER_DONT_RUN:
        raise cv.Invalid(f"{own}: the device measures in its slots, and at no other time. Set update_interval: never.")
    if full.get("logger") and full["logger"][CONF_LEVEL] not in QUIET:
        raise cv.Invalid("the log would hold true readings. Set logger: level: INFO, or a quieter level.")
    for page in ("prometheus", "web_server"):
        if (full.get(page) or {}).get(CONF_INCLUDE_INTERNAL):
            raise cv.Invalid(f"{page}: include_internal would publish true readings. Remove it.")
    if "host" not in full and not full.get("mqtt", {}).get(CONF_CLEAN_SESSION):
        raise cv.Invalid("the device needs mqtt with clean_session: true, as in the file that provision wrote.")
    if len([part for part in full["sensor"] if part["platform"] == "cloakwork"]) != 1:
        raise cv.Invalid("a board is one device: provision another board for another sensor.")
    return config


FINAL_VALIDATE_SCHEMA = _final_validate


async def to_code(config):
    """Write the C++ that creates the sensor and connects it to its source."""
    cloaked = await sensor.new_sensor(config)
    await cg.register_component(cloaked, config)
    source = await cg.get_variable(config[CONF_SOURCE])
    cg.add(cloaked.set_source(source, source))
