package lifecycle

// Trouble is what hinders a pod that is not ready, in the words that users see.
type Trouble string

// The kinds of trouble that are told apart, for each asks for something else.
const (
	// NoTrouble means that nothing is known to hinder it.
	NoTrouble Trouble = ""
	// Unschedulable means that no node takes it.
	Unschedulable Trouble = "Unschedulable"
	// ImageUnpullable means that its image cannot be had.
	ImageUnpullable Trouble = "ImagePullBackOff"
	// BadContainer means that its container cannot be made or started.
	BadContainer Trouble = "ContainerCannotStart"
	// CrashLooping means that its container ends again and again.
	CrashLooping Trouble = "CrashLoopBackOff"
)
