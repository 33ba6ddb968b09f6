package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// converged returns nil if the instance matches its spec according to Kubernetes, etcd and a client.
func (s *subject) converged(ctx context.Context) error {
	obj, err := s.object(ctx)
	if err != nil {
		return err
	}
	if err := s.says(obj); err != nil {
		return err
	}
	members, err := s.list(ctx)
	if err != nil {
		return err
	}
	if err := membersHeld(obj, members); err != nil {
		return err
	}
	if err := s.podsHeld(ctx, obj, members); err != nil {
		return err
	}
	if err := s.kept(ctx, obj); err != nil {
		return err
	}
	led, err := consistencyclient.Service(s.api, inNamespace(s, obj.Status.ServiceName))(ctx)
	if err != nil || len(led) != int(obj.Spec.Size) {
		return fmt.Errorf("clients are led to %d of %d members: %w", len(led), obj.Spec.Size, errors.Join(err, errNotYet))
	}
	return nil
}

var errNotYet = errors.New("not yet")

// says returns the instance's own status.
func (s *subject) says(obj *etcdv1.EtcdCluster) error {
	ready := meta.FindStatusCondition(obj.Status.Conditions, "Ready")
	switch {
	case ready == nil:
		return errors.New("the instance has no condition Ready")
	case ready.Status != "True" || obj.Spec.Paused:
		return fmt.Errorf("the instance says %s: %s", ready.Reason, ready.Message)
	case obj.Status.ObservedGeneration != obj.Generation:
		return fmt.Errorf("generation %d is observed of %d", obj.Status.ObservedGeneration, obj.Generation)
	}
	return nil
}

func membersHeld(obj *etcdv1.EtcdCluster, members []*pb.Member) error {
	if len(members) != int(obj.Spec.Size) {
		return fmt.Errorf("etcd's list has %d members, %d are declared", len(members), obj.Spec.Size)
	}
	for _, m := range members {
		if m.IsLearner || m.Name == "" {
			return fmt.Errorf("member %x %q is a learner or never started", m.ID, m.Name)
		}
	}
	return nil
}

// podsHeld queries every pod: exactly the listed members answer, as one cluster with one leader, at
// the declared version.
func (s *subject) podsHeld(ctx context.Context, obj *etcdv1.EtcdCluster, members []*pb.Member) error {
	answers := s.ask(ctx)
	if len(answers) != len(members) {
		return fmt.Errorf("there are %d pods for %d members", len(answers), len(members))
	}
	for _, a := range answers {
		switch {
		case a.err != nil:
			return fmt.Errorf("%s does not answer: %w", a.pod.Name, a.err)
		case !isVoter(members, a.status.Header.MemberId):
			return fmt.Errorf("%s is not in etcd's list", a.pod.Name)
		case len(a.status.Errors) > 0:
			return fmt.Errorf("%s says %v", a.pod.Name, a.status.Errors)
		case a.status.Leader != answers[0].status.Leader || a.status.Header.ClusterId != answers[0].status.Header.ClusterId:
			return fmt.Errorf("%s follows another leader", a.pod.Name)
		case !strings.HasPrefix(a.status.Version, obj.Spec.Version):
			return fmt.Errorf("%s runs %s, declared is %s", a.pod.Name, a.status.Version, obj.Spec.Version)
		case a.pod.DeletionTimestamp != nil || !podReady(a.pod):
			return fmt.Errorf("the pod %s is not ready", a.pod.Name)
		}
	}
	return nil
}

func podReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// verdict is the oracle's result for one round.
type verdict struct {
	healed     time.Duration
	gap        time.Duration
	writes     int
	told       []string
	violations []string
	forgiven   bool // the adversary itself destroyed copies that the quorum needs
}

// judge waits until the instance has recovered, and checks all promises.
func (v *adversary) judge(ctx context.Context, o *observers, undone error) verdict {
	var out verdict
	if undone != nil {
		out.violations = append(out.violations, fmt.Sprintf("what the adversary did cannot be undone: %v", undone))
	}
	began := time.Now()
	out.forgiven = v.destroyed() > int(v.layout.size)-(int(v.layout.size)/2+1)
	err := v.heals(ctx, &out, began)
	if err == nil {
		if err := v.rests(ctx, v.rest); err != nil {
			out.violations = append(out.violations, err.Error())
		}
	} else {
		out.violations = append(out.violations, v.unhealed(ctx, err, out.forgiven)...)
	}
	v.examine(ctx, o, &out, err == nil)
	return out
}

// heals waits until the instance has converged, and stays so for two seconds.
func (v *adversary) heals(ctx context.Context, out *verdict, began time.Time) error {
	return await(ctx, v.heal, 500*time.Millisecond, func(ctx context.Context) error {
		if err := v.converged(ctx); err != nil {
			return err
		}
		out.healed = time.Since(began)
		pause(ctx, 2*time.Second)
		return v.converged(ctx)
	})
}

// unhealed describes why an instance has not recovered. If the adversary itself destroyed copies that
// the quorum needs, a message with a remedy is sufficient.
func (v *adversary) unhealed(ctx context.Context, err error, forgiven bool) []string {
	words := "nothing"
	if obj, failed := v.object(ctx); failed == nil {
		if ready := meta.FindStatusCondition(obj.Status.Conditions, "Ready"); ready != nil {
			words = ready.Reason + ": " + ready.Message
		}
	}
	if forgiven && namesWayOut(words) {
		return nil
	}
	return []string{fmt.Sprintf("not healed %v; the instance says %q", err, words)}
}

// examine checks the data and the foreign objects.
func (v *adversary) examine(ctx context.Context, o *observers, out *verdict, healed bool) {
	fail := func(err error) {
		if err != nil {
			out.violations = append(out.violations, err.Error())
		}
	}
	o.copies.end()
	violations, told := o.copies.verdict()
	out.violations, out.told = append(out.violations, violations...), told
	o.witness.Stop()
	tally := o.witness.Stats()
	out.writes, out.gap = tally.Acknowledged, tally.LongestGap
	if len(tally.Clusters) > 1 {
		out.violations = append(out.violations, fmt.Sprintf("writes were acknowledged by %d clusters", len(tally.Clusters)))
	}
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	lost, err := o.witness.Lost(limited)
	if healed {
		fail(err)
	}
	if len(lost) > 0 {
		out.violations = append(out.violations, fmt.Sprintf("%d of %d acknowledged writes are lost: %.200q", len(lost), tally.Acknowledged, lost))
	}
	fail(o.historian.check())
	fail(v.foreignTouched(ctx, o.foreign))
}
