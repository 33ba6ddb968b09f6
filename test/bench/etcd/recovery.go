package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// fault is a fault of a member.
type fault struct {
	Disk   bool `json:"disk"`   // its volume is deleted too
	Leader bool `json:"leader"` // it is the leader
}

func (b fault) String() string {
	what, whom := "pod", "a follower"
	if b.Disk {
		what = "pod and disk"
	}
	if b.Leader {
		whom = "the leader"
	}
	return what + " of " + whom
}

// recovery is the result for one kind of fault.
type recovery struct {
	Fault    fault               `json:"blow"`
	Plain    []sampleUnderWrites `json:"plain,omitempty"` // a plain StatefulSet does not recover from the loss of a disk
	Governor []sampleUnderWrites `json:"governor"`

	Ratio float64 `json:"ratioReady,omitempty"`
	// HealthyAfterStart and ReadyAfterStart are the times until the cluster was healthy
	// and ready, from the end of the start of the new pod.
	HealthyAfterStart float64 `json:"healthyBeyondPodStartSeconds"`
	ReadyAfterStart   float64 `json:"beyondPodStartSeconds"`
	Gap               float64 `json:"longestGapSeconds"`
}

// sampleUnderWrites is one recovery while a client writes.
type sampleUnderWrites struct {
	sample

	// PodStart is the time from the creation of the replacement pod until it was ready.
	PodStart float64 `json:"podStartSeconds"`
	// Gap is the longest time without an acknowledged write.
	Gap          float64 `json:"longestGapSeconds"`
	Acknowledged int     `json:"acknowledged"`
}

// faults returns the faults in the order of their severity.
func faults() []fault {
	return []fault{{}, {Leader: true}, {Disk: true}, {Disk: true, Leader: true}}
}

func measureRecoveries(ctx context.Context, s *testEnv, o options) ([]recovery, error) {
	governor := governed("wounded", 3, etcdv1.TLSModeDisabled)
	static, err := plain("wounded-plain", 3)
	if err != nil {
		return nil, err
	}
	for _, x := range []*subject{static, governor} {
		if _, err := s.create(ctx, x); err != nil {
			return nil, err
		}
	}
	var all []recovery
	for _, b := range faults() {
		w := recovery{Fault: b}
		if err := w.measure(ctx, s, o.rounds, governor, static); err != nil {
			return nil, fmt.Errorf("%s: %w", b, err)
		}
		w.compare()
		all = append(all, w)
	}
	return all, s.remove(ctx, governor, static)
}

func (w *recovery) measure(ctx context.Context, s *testEnv, rounds int, governor, static *subject) error {
	for round := range rounds {
		progress("lost: %s, round %d of %d", w.Fault, round+1, rounds)
		if !w.Fault.Disk {
			h, err := s.injectAndRecover(ctx, static, w.Fault)
			if err != nil {
				return err
			}
			w.Plain = append(w.Plain, h)
		}
		h, err := s.injectAndRecover(ctx, governor, w.Fault)
		if err != nil {
			return err
		}
		w.Governor = append(w.Governor, h)
	}
	return nil
}

// minWrites acknowledged writes show that the client works.
const minWrites = 100

// injectAndRecover injects the fault while a client writes, waits until the cluster has
// recovered, and checks for lost writes.
func (s *testEnv) injectAndRecover(ctx context.Context, x *subject, b fault) (h sampleUnderWrites, err error) {
	victim, err := s.findPod(ctx, x, b.Leader)
	if err != nil {
		return h, err
	}
	w := consistencyclient.Start(ctx, consistencyclient.Options{
		Find: consistencyclient.Service(s.cache, x.service), Interval: writeInterval, Prefix: fmt.Sprintf("%s/%d/", x.name, time.Now().UnixNano()),
	})
	defer w.Stop()
	if err := s.waitForWrites(ctx, w, minWrites); err != nil {
		return h, err
	}
	began := time.Now()
	if err := s.inject(ctx, victim, b.Disk); err != nil {
		return h, err
	}
	if h.sample, err = s.recover(ctx, x, began, victim); err != nil {
		return h, err
	}
	// A gap that has started must end before it is measured.
	if err := s.waitForWrites(ctx, w, w.Stats().Acknowledged+minWrites); err != nil {
		return h, err
	}
	h.Gap = w.LongestGap(began).Seconds()
	h.PodStart, err = s.podStart(ctx, x, began)
	progress("  %-13s healthy after %.2f s, ready after %.2f s (pod start %.2f s), longest gap %.2f s", x.name, h.Healthy, h.Ready, h.PodStart, h.Gap)
	return h, errors.Join(err, h.checkWrites(ctx, w))
}

// writeInterval is the interval of writes per connection. It limits the precision of gaps to
// a few milliseconds.
const writeInterval = 5 * time.Millisecond

func (s *testEnv) waitForWrites(ctx context.Context, w *consistencyclient.Client, acknowledged int) error {
	return s.until(ctx, "a client writes", func(context.Context) error {
		if t := w.Stats(); t.Acknowledged < acknowledged {
			return fmt.Errorf("%s", t)
		}
		return nil
	})
}

// findPod returns the leader's pod, or the first other one.
func (s *testEnv) findPod(ctx context.Context, x *subject, leader bool) (victim *corev1.Pod, err error) {
	err = s.until(ctx, x.name+" has a leader", func(ctx context.Context) error {
		pods, err := s.members(ctx, x, nil)
		if err != nil {
			return err
		}
		for i := range pods {
			leads, err := s.leads(ctx, x, &pods[i])
			if err != nil {
				return err
			}
			if leads == leader {
				victim = pods[i].DeepCopy()
				return nil
			}
		}
		return errors.New("no member leads")
	})
	return victim, err
}

// inject deletes the pod immediately, and its volume if requested.
func (s *testEnv) inject(ctx context.Context, victim *corev1.Pod, disk bool) error {
	for _, v := range victim.Spec.Volumes {
		if disk && v.PersistentVolumeClaim != nil {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Namespace, claim.Name = victim.Namespace, v.PersistentVolumeClaim.ClaimName
			if err := s.Delete(ctx, claim); err != nil {
				return err
			}
		}
	}
	return s.Delete(ctx, victim, client.GracePeriodSeconds(0))
}

// podStart returns the start time of the replacement pod.
func (s *testEnv) podStart(ctx context.Context, x *subject, since time.Time) (float64, error) {
	pods, err := s.members(ctx, x, nil)
	if err != nil {
		return 0, err
	}
	for i := range pods {
		if b := s.podTimes.of(pods[i].UID); b.created.After(since) && !b.ready.IsZero() {
			return b.ready.Sub(b.created).Seconds(), nil
		}
	}
	return 0, errors.New("no pod has replaced the lost one")
}

// checkWrites reads back all acknowledged writes.
func (h *sampleUnderWrites) checkWrites(ctx context.Context, w *consistencyclient.Client) error {
	w.Stop()
	h.Acknowledged = w.Stats().Acknowledged
	lost, err := w.Lost(ctx)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%d of %d acknowledged writes are lost, such as %s", len(lost), h.Acknowledged, lost[0])
	}
	return err
}

func (w *recovery) compare() {
	ready := func(h sampleUnderWrites) float64 { return h.Ready }
	if len(w.Plain) > 0 {
		w.Ratio = median(w.Governor, ready) / median(w.Plain, ready)
	}
	w.HealthyAfterStart = median(w.Governor, func(h sampleUnderWrites) float64 { return h.Healthy - h.PodStart })
	w.ReadyAfterStart = median(w.Governor, func(h sampleUnderWrites) float64 { return h.Ready - h.PodStart })
	for _, h := range w.Governor {
		w.Gap = max(w.Gap, h.Gap)
	}
}
