"""Many sources, or a large floor, by moves that cost the same on any floor.

**The problem.** `Tracker` and `PointSources` compare all places with each other: they need the whole matrix of the
physics, a table of all distances, and arrays of the size of sources times places. That is right for a flat. It stops
at 12 sources, and on a floor with 50,000 cells and 1,600 sensors nothing of it fits.

**Why another method works.** In a steady field, heat reaches a few metres, so a source changes few readings and two
sources far apart say nothing about each other. Whoever moves a source looks only at the sensors around it, and a frame
costs as much as it has sources and cells, whatever their product.

**What is given up.** After each frame the belief keeps the distribution of each source alone, and forgets what two of
them say about each other; `Tracker` keeps the last frames together. Strengths must be known, readings must not drift,
and no moment is judged again from later frames.

**The belief** is a Poisson multi-Bernoulli filter (Williams, 2015). A source that is likely enough is a *track*: a
probability for each place near it, and one that it is absent. All *others* together are a Poisson process, of which
only the expected number at each place is known. So a person who comes in needs no track before there is a reading
that says so, and nobody must decide how many there are.

**The files**, in the order in which a frame takes them:

- `floor_tracker`: `FloorTracker`, frame after frame; who is who, and which sensor is broken.
- `floor_sources`: which problems come here at all, and single frames for `PointSources`.
- `floor_motion`: the belief a while later; walks lead from patch to patch, without a table of distances.
- `floor_belief`: the belief before a frame (`FloorPrior`) and after it (`FloorBelief`), which turns likely others into
  tracks and unlikely tracks into others.
- `floor_sampler`: the posterior of a frame, from eight chains that run in parallel.
- `floor_chain`: the moves of a chain; `floor_weights`: what its compiled loops take, and how they weigh a place.
"""
