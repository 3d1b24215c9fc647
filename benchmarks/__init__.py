"""Speed and memory against named rivals, at equal accuracy, in one run."""
