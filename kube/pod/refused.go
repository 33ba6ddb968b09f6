package pod

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// RefusedAfter is how long a controller may take to create a pod before events are read.
	RefusedAfter = 3 * time.Second
	// EventWithin is the maximum age of an event that counts: a controller retries after at most
	// 17 minutes, and each failure creates an event.
	EventWithin = 20 * time.Minute
)

// Refused returns why the API server has rejected pods of the object, such as a StatefulSet or a
// Job, since the given time: a ResourceQuota, a LimitRange, or an admission webhook. Only Events
// have these messages; call it only for an object that lacks a pod. Without permission to list
// events it is empty.
func Refused(ctx context.Context, live client.Reader, kind string, obj client.Object, since time.Time) string {
	var events corev1.EventList
	err := live.List(ctx, &events, client.InNamespace(obj.GetNamespace()), client.MatchingFields{
		"involvedObject.kind": kind, "involvedObject.name": obj.GetName(), "reason": "FailedCreate",
	})
	if err != nil {
		return ""
	}
	last, words := since, ""
	for _, e := range events.Items {
		if at := happened(e); e.InvolvedObject.UID == obj.GetUID() && at.After(last) {
			last, words = at, e.Message
		}
	}
	return refusal(words)
}

func happened(e corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.EventTime.After(at) {
		at = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}

// refusal is the API server's error without what the controller wrote before it.
func refusal(message string) string {
	for _, before := range []string{"failed error: ", "Error creating: "} { // of StatefulSets, and of all others
		if _, said, ok := strings.Cut(message, before); ok {
			message = said
		}
	}
	return strings.TrimSuffix(message, ".")
}
