package lifecycle

// PodProblem is why a pod is not ready, in the words that users see.
type PodProblem string

// The problems of pods. Each has another remedy.
const (
	// PodProblemNone means that no problem is known.
	PodProblemNone PodProblem = ""
	// PodProblemUnschedulable means that the scheduler finds no node.
	PodProblemUnschedulable PodProblem = "Unschedulable"
	// PodProblemImagePullBackOff means that the kubelet cannot pull an image.
	PodProblemImagePullBackOff PodProblem = "ImagePullBackOff"
	// PodProblemContainerCannotStart means that the kubelet cannot create or start a container.
	PodProblemContainerCannotStart PodProblem = "ContainerCannotStart"
	// PodProblemCrashLoopBackOff means that a container exits again and again.
	PodProblemCrashLoopBackOff PodProblem = "CrashLoopBackOff"
)
