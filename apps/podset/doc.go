// Package podset is the application PodSet: a number of identical pods.
//
// The pods are independent of each other. A set owns the pods that have its labels and no
// other controller. It releases a pod that loses the labels, and adopts a pod that has
// them and no controller. Deleting a working pod does harm. So a scale-in deletes the
// least useful pods, and a changed template replaces only as many pods at a time as may be
// unavailable.
package podset

// Name is the application's name in labels and metrics.
const Name = "podset"

// Planner implements lifecycle.Planner for pod sets. It is stateless.
type Planner struct{}
