package window

// NewLearning returns a counter that corrects another one.
var NewLearning = newLearning
