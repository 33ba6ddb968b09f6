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

// blow is what is done to a member.
type blow struct {
	Disk   bool `json:"disk"`   // its volume is deleted too
	Leader bool `json:"leader"` // it is the leader
}

func (b blow) String() string {
	what, whom := "pod", "a follower"
	if b.Disk {
		what = "pod and disk"
	}
	if b.Leader {
		whom = "the leader"
	}
	return what + " of " + whom
}

// wound is one kind of blow and what came of it.
type wound struct {
	Blow     blow      `json:"blow"`
	Plain    []healing `json:"plain,omitempty"` // it cannot heal the loss of a disk
	Governor []healing `json:"governor"`

	Ratio float64 `json:"ratioReady,omitempty"`
	// Healed and Beyond are when the cluster was healthy and ready, from when the new
	// pod had started.
	Healed float64 `json:"healthyBeyondPodStartSeconds"`
	Beyond float64 `json:"beyondPodStartSeconds"`
	Gap    float64 `json:"longestGapSeconds"`
}

// healing is one recovery under a client that writes.
type healing struct {
	sample

	// PodStart is how long the pod that took the place of the lost one needed from
	// its creation until it was ready.
	PodStart float64 `json:"podStartSeconds"`
	// Gap is the longest time without an acknowledged write.
	Gap          float64 `json:"longestGapSeconds"`
	Acknowledged int     `json:"acknowledged"`
}

// blows are dealt in this order, the harmless ones first.
func blows() []blow {
	return []blow{{}, {Leader: true}, {Disk: true}, {Disk: true, Leader: true}}
}

func measureWounds(ctx context.Context, s *stage, o options) ([]wound, error) {
	ours := governed("wounded", 3, etcdv1.Disabled)
	theirs, err := plain("wounded-plain", 3)
	if err != nil {
		return nil, err
	}
	for _, x := range []*subject{theirs, ours} {
		if _, err := s.create(ctx, x); err != nil {
			return nil, err
		}
	}
	var all []wound
	for _, b := range blows() {
		w := wound{Blow: b}
		if err := w.heal(ctx, s, o.rounds, ours, theirs); err != nil {
			return nil, fmt.Errorf("%s: %w", b, err)
		}
		w.compare()
		all = append(all, w)
	}
	return all, s.remove(ctx, ours, theirs)
}

func (w *wound) heal(ctx context.Context, s *stage, rounds int, ours, theirs *subject) error {
	for round := range rounds {
		progress("lost: %s, round %d of %d", w.Blow, round+1, rounds)
		if !w.Blow.Disk {
			h, err := s.strike(ctx, theirs, w.Blow)
			if err != nil {
				return err
			}
			w.Plain = append(w.Plain, h)
		}
		h, err := s.strike(ctx, ours, w.Blow)
		if err != nil {
			return err
		}
		w.Governor = append(w.Governor, h)
	}
	return nil
}

// enough writes show that the client is under way.
const enough = 100

// strike deals the blow under a client that writes, waits until all is well again,
// and looks whether anything is lost.
func (s *stage) strike(ctx context.Context, x *subject, b blow) (h healing, err error) {
	victim, err := s.victim(ctx, x, b.Leader)
	if err != nil {
		return h, err
	}
	w := consistencyclient.Start(ctx, consistencyclient.Options{
		Find: consistencyclient.Service(s.cache, x.service), Pace: writeEvery, Prefix: fmt.Sprintf("%s/%d/", x.name, time.Now().UnixNano()),
	})
	defer w.Stop()
	if err := s.under(ctx, w, enough); err != nil {
		return h, err
	}
	began := time.Now()
	if err := s.deal(ctx, victim, b.Disk); err != nil {
		return h, err
	}
	if h.sample, err = s.recover(ctx, x, began, victim); err != nil {
		return h, err
	}
	// A gap that has begun shall end before it is measured.
	if err := s.under(ctx, w, w.Tally().Acknowledged+enough); err != nil {
		return h, err
	}
	h.Gap = w.LongestGap(began).Seconds()
	h.PodStart, err = s.successor(ctx, x, began)
	progress("  %-13s healthy after %.2f s, ready after %.2f s (pod start %.2f s), longest gap %.2f s", x.name, h.Healthy, h.Ready, h.PodStart, h.Gap)
	return h, errors.Join(err, h.prove(ctx, w))
}

// writeEvery is the pace of each of the witness' connections: gaps are measured to
// a few milliseconds.
const writeEvery = 5 * time.Millisecond

func (s *stage) under(ctx context.Context, w *consistencyclient.Witness, acknowledged int) error {
	return s.until(ctx, "a client writes", func(context.Context) error {
		if t := w.Tally(); t.Acknowledged < acknowledged {
			return fmt.Errorf("%s", t)
		}
		return nil
	})
}

// victim is the leader's pod, or the first other one.
func (s *stage) victim(ctx context.Context, x *subject, leader bool) (victim *corev1.Pod, err error) {
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
		return errors.New("nobody leads")
	})
	return victim, err
}

// deal takes the pod away at once, and its volume if it is so wanted.
func (s *stage) deal(ctx context.Context, victim *corev1.Pod, disk bool) error {
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

// successor says how long the pod that is new took to start.
func (s *stage) successor(ctx context.Context, x *subject, since time.Time) (float64, error) {
	pods, err := s.members(ctx, x, nil)
	if err != nil {
		return 0, err
	}
	for i := range pods {
		if b := s.births.of(pods[i].UID); b.born.After(since) && !b.ready.IsZero() {
			return b.ready.Sub(b.born).Seconds(), nil
		}
	}
	return 0, errors.New("no pod has taken the place of the lost one")
}

// prove reads back all that was acknowledged.
func (h *healing) prove(ctx context.Context, w *consistencyclient.Witness) error {
	w.Stop()
	h.Acknowledged = w.Tally().Acknowledged
	lost, err := w.Lost(ctx)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%d of %d acknowledged writes are lost, such as %s", len(lost), h.Acknowledged, lost[0])
	}
	return err
}

func (w *wound) compare() {
	ready := func(h healing) float64 { return h.Ready }
	if len(w.Plain) > 0 {
		w.Ratio = median(w.Governor, ready) / median(w.Plain, ready)
	}
	w.Healed = median(w.Governor, func(h healing) float64 { return h.Healthy - h.PodStart })
	w.Beyond = median(w.Governor, func(h healing) float64 { return h.Ready - h.PodStart })
	for _, h := range w.Governor {
		w.Gap = max(w.Gap, h.Gap)
	}
}
