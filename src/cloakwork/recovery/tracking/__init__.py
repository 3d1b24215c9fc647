"""Follow sources from frame to frame.

A `Tracker` (tracker.py) sends each frame through six stages, which can be read and tested alone:

1. *Observe* (observation.py): an `Observer` turns readings into an `Observation`, the score of a source in each cell.
2. *Predict* (motion.py): a `MotionModel` gives the `Step` from frame to frame; a `Belief` (belief.py) is what
   frames before the window say, and drifting_offsets.py what they say about drift.
3. *Draw* (path_sampler.py): a `PathSampler` draws the paths of all sources over the frames of a window (window.py), in
   several chains, and sums what they say about a frame in `TrackMarginals`. path_kernels.py has its inner loops.
4. *Check* (`draw_checked` in goodness_of_fit.py): a frame that does not fit is drawn again without its worst sensor, or
   with more noise.
5. *Associate* (alignment.py, registry.py): an `Aligner` finds which source of one draw is which of another, and the
   `Registry` keeps the labels of tracks.
6. *Summarise* (estimate.py): a `Summariser` makes a `FrameEstimate`.

history.py judges a recording from all its frames; fault_detection.py tests whether readings still follow the model.
"""
