package experiment

// A namespace permits experiments by a label.
const (
	OptInLabel = "governor.dev/chaos"
	OptInValue = "allowed"
)
