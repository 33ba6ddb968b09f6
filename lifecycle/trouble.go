package lifecycle

// PodProblem is what hinders a pod that is not ready, in the words that users see.
type PodProblem string

// The kinds of trouble that are told apart, for each asks for something else.
const (
	// PodProblemNone means that nothing is known to hinder it.
	PodProblemNone PodProblem = ""
	// PodProblemUnschedulable means that no node takes it.
	PodProblemUnschedulable PodProblem = "Unschedulable"
	// PodProblemImagePullBackOff means that its image cannot be had.
	PodProblemImagePullBackOff PodProblem = "ImagePullBackOff"
	// PodProblemContainerCannotStart means that its container cannot be made or started.
	PodProblemContainerCannotStart PodProblem = "ContainerCannotStart"
	// PodProblemCrashLoopBackOff means that its container ends again and again.
	PodProblemCrashLoopBackOff PodProblem = "CrashLoopBackOff"
)
