"""Cloakwork: privacy for physical sensors.

Each sensor adds exactly enough noise to its own reading that nobody can tell where a source exactly is, while an
analyst with only the noisy readings still learns its general vicinity.

Names are loaded when they are first used: `import cloakwork` is quick, and `cloakwork.sensor` stays free of NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloakwork.accuracy import cramer_rao, emd, l1, l2, le_cam, limits, papers_bound, resolution
    from cloakwork.auditing import Audit, audit
    from cloakwork.errors import (
        BudgetError,
        CalibrationError,
        CloakworkError,
        InputError,
        MeasureError,
        PhysicsError,
        ReadingError,
        SiteError,
    )
    from cloakwork.physics import (
        FloorPlan,
        Graph,
        HeatLine,
        HeatPlane,
        Matrix,
        Metric,
        Physics,
        Placement,
        Pulse,
        Rooms,
        Space,
        Steady,
        Tolerance,
        sources,
    )
    from cloakwork.privacy import (
        Calibration,
        Cloak,
        Design,
        DesignReport,
        Profile,
        Scope,
        SensorChoice,
        choose_sensors,
        mean_variance,
        place_variances,
        sensitivity,
    )
    from cloakwork.recovery import BasisPursuit, Bregman, Fit, PointSources, Radius, Recovery, Source, Status, recover
    from cloakwork.series import (
        Bins,
        Coefficients,
        Decay,
        Fourier,
        MovingAverage,
        PaperLaplace,
        PowerDecay,
        Published,
        RunningSum,
        Seasonal,
        SeriesCloak,
        SquareRoot,
        Stream,
        Trend,
        WindowSum,
        convolve,
        marginals,
        publish,
        tally,
    )
    from cloakwork.site import Site, load_site

_HOMES = {
    "auditing": "Audit audit",
    "errors": "BudgetError CalibrationError CloakworkError InputError MeasureError PhysicsError ReadingError SiteError",
    "accuracy": "cramer_rao emd l1 l2 le_cam limits papers_bound resolution",
    "physics": (
        "FloorPlan Graph HeatLine HeatPlane Matrix Metric Physics Placement Pulse Rooms Space Steady Tolerance sources"
    ),
    "privacy": (
        "Calibration Cloak Design DesignReport Profile Scope SensorChoice choose_sensors mean_variance place_variances "
        "sensitivity"
    ),
    "recovery": "BasisPursuit Bregman Fit PointSources Radius Recovery Source Status recover",
    "series": (
        "Bins Coefficients Decay Fourier MovingAverage PaperLaplace PowerDecay Published RunningSum Seasonal "
        "SeriesCloak SquareRoot Stream Trend WindowSum convolve marginals publish tally"
    ),
    "site": "Site load_site",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Audit",
    "BasisPursuit",
    "Bins",
    "Bregman",
    "BudgetError",
    "Calibration",
    "CalibrationError",
    "Cloak",
    "CloakworkError",
    "Coefficients",
    "Decay",
    "Design",
    "DesignReport",
    "Fit",
    "FloorPlan",
    "Fourier",
    "Graph",
    "HeatLine",
    "HeatPlane",
    "InputError",
    "Matrix",
    "MeasureError",
    "Metric",
    "MovingAverage",
    "PaperLaplace",
    "Physics",
    "PhysicsError",
    "Placement",
    "PointSources",
    "PowerDecay",
    "Profile",
    "Published",
    "Pulse",
    "Radius",
    "ReadingError",
    "Recovery",
    "Rooms",
    "RunningSum",
    "Scope",
    "Seasonal",
    "SensorChoice",
    "SeriesCloak",
    "Site",
    "SiteError",
    "Source",
    "Space",
    "SquareRoot",
    "Status",
    "Steady",
    "Stream",
    "Tolerance",
    "Trend",
    "WindowSum",
    "audit",
    "choose_sensors",
    "convolve",
    "cramer_rao",
    "emd",
    "l1",
    "l2",
    "le_cam",
    "limits",
    "load_site",
    "marginals",
    "mean_variance",
    "papers_bound",
    "place_variances",
    "publish",
    "recover",
    "resolution",
    "sensitivity",
    "sources",
    "tally",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f"cloakwork.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'cloakwork' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
