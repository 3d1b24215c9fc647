"""How much noise does a flat need, and what would more sensors or another claim change?

Run: python examples/plan_a_flat.py
"""

import cloakwork as cw

rooms = cw.Rooms.from_text(
    """
####################
#........#.........#
#........#.........#
#........+.........#
#........+.........#
#........#.........#
####++####.........#
#........#.........#
#........+.........#
#........+.........#
#........#.........#
####################
""",
    cell=0.5,
)
print(f"{len(rooms.space)} cells, {rooms.doors} doors, {rooms.size[0]:g} m x {rooms.size[1]:g} m\n")


def is_floor(x: float, y: float) -> bool:
    """Whether a sensor can hang here, or a wall is in the way."""
    try:
        rooms.cell_at(x, y)
    except cw.PhysicsError:
        return False
    return True


columns = ("sensors every", "epsilon", "alpha", "equal noise", "typical deviation", "with designed noise")
print("  ".join(f"{name:>{len(name)}}" for name in columns))
for spacing in (1.0, 2.0):
    at = [
        (spacing * (i + 0.5), spacing * (j + 0.5))
        for i in range(int(rooms.size[0] / spacing))
        for j in range(int(rooms.size[1] / spacing))
        if is_floor(spacing * (i + 0.5), spacing * (j + 0.5))
    ]
    flat = cw.FloorPlan(rooms, at, cw.Steady(reach=1.0), footprint=0.5, gain=5.0)
    for epsilon, alpha in ((1.0, 0.1), (4.0, 0.1), (4.0, 0.5)):
        cloak = cw.Cloak(flat, epsilon=epsilon, delta=1e-5, alpha=alpha, design="least-error")
        noise, report = cloak.allowance.equal().sigma[0], cloak.design_report
        row = (f"{spacing} m", f"{epsilon}", f"{alpha} m", f"{noise:.2f}", f"{report.equal_vicinity:.2f} m")
        cells = (*row, f"{report.vicinity:.2f} m")
        print("  ".join(f"{cell:>{len(name)}}" for cell, name in zip(cells, columns, strict=True)))
