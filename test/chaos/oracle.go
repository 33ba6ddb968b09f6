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
	"github.com/governor-dev/governor/lifecycle/chaos"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// converged returns nil if the instance matches its spec according to Kubernetes, etcd and a client.
func (s *subject) converged(ctx context.Context) error {
	if app, ok := s.layout.application(); ok {
		return s.statelessConverged(ctx, app)
	}
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
	case meta.IsStatusConditionTrue(obj.Status.Conditions, "ChangeHeld"):
		return fmt.Errorf("a policy holds a change: %s", ready.Message)
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
	acts       []string // reasons that a person acted upon
	violations []string
	forgiven   bool // the adversary itself destroyed copies that the quorum needs
}

// judge waits until the instance has recovered, and checks all promises.
func (v *adversary) judge(ctx context.Context, o *observers, undone error) verdict {
	var out verdict
	switch {
	case v.departed != nil:
		out = v.judgeDeletion(ctx, o)
	default:
		out = v.judgeRecovery(ctx, o)
	}
	if undone != nil {
		out.violations = append(out.violations, fmt.Sprintf("what the adversary did cannot be undone: %v", undone))
	}
	out.violations = append(out.violations, v.accepted...)
	return out
}

func (v *adversary) judgeRecovery(ctx context.Context, o *observers) verdict {
	var out verdict
	began := time.Now()
	err := v.heals(ctx, &out, began)
	out.forgiven = v.quorumDestroyed()
	if err == nil {
		for _, err := range []error{v.rests(ctx, v.rest), v.operatorHeld(ctx)} {
			if err != nil {
				out.violations = append(out.violations, err.Error())
			}
		}
	} else {
		out.violations = append(out.violations, v.unhealed(ctx, err, out.forgiven)...)
	}
	v.examine(ctx, o, &out, err == nil)
	return out
}

// operatorHeld checks the operator itself, if the adversary touched it.
func (v *adversary) operatorHeld(ctx context.Context) error {
	for _, m := range v.moves {
		if m.what.HurtsOperator() && m.outcome == moveDone {
			return v.operates(ctx)
		}
	}
	return nil
}

// quorumDestroyed reports whether the adversary itself destroyed copies that the quorum needs.
func (v *adversary) quorumDestroyed() bool {
	return v.destroyed() > int(v.layout.size)-(int(v.layout.size)/2+1)
}

// heals waits until the instance has converged, and stays so for two seconds. A person does what it says
// meanwhile, and the time counts from the last such act.
func (v *adversary) heals(ctx context.Context, out *verdict, began time.Time) error {
	var last error
	for ctx.Err() == nil {
		if last = v.converged(ctx); last == nil {
			out.healed = time.Since(began)
			pause(ctx, 2*time.Second)
			if last = v.converged(ctx); last == nil {
				return nil
			}
		}
		since := began
		if v.person.acted.After(since) {
			since = v.person.acted
		}
		if time.Since(since) > v.heal+v.layout.held() || v.lost() {
			break
		}
		_ = v.attend(ctx) // the next look tells what became of it
		pause(ctx, 500*time.Millisecond)
	}
	out.healed = 0
	return fmt.Errorf("within %s after the last act of a person (%v): %w", v.heal, v.person.acts(), errors.Join(last, ctx.Err()))
}

// lostFor is how long the instance says that its data is lost before the oracle believes it.
const lostFor = 20 * time.Second

// lost reports whether the adversary destroyed the quorum's data, and the instance says so.
func (v *adversary) lost() bool {
	return v.person.heard.reason == quorumLost && time.Since(v.person.since) > lostFor && v.quorumDestroyed()
}

const quorumLost = "QuorumLost"

// unhealed describes why an instance has not recovered. If the adversary itself destroyed copies that the
// quorum needs, the instance must say so, and leave alone what is left.
func (v *adversary) unhealed(ctx context.Context, err error, forgiven bool) []string {
	now := v.stalled(ctx)
	if !forgiven || now.reason != quorumLost {
		return []string{fmt.Sprintf("not healed %v; the instance says %q", err, v.words(ctx))}
	}
	if err := v.survivorsStay(ctx); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// words are what the instance says.
func (s *subject) words(ctx context.Context) string {
	conditions, err := s.conditions(ctx)
	if ready := meta.FindStatusCondition(conditions, "Ready"); err == nil && ready != nil {
		return ready.Reason + ": " + ready.Message
	}
	return "nothing"
}

// survivorsStay checks that the volumes and the answering members that are left of a lost quorum stay as
// they are.
func (v *adversary) survivorsStay(ctx context.Context) error {
	claims := func() (all []bystander, err error) {
		found, err := v.Find(ctx, v.api, chaos.PersistentVolumeClaim)
		for i := range found {
			if found[i].GetDeletionTimestamp() == nil {
				all = append(all, seenAs(&found[i]))
			}
		}
		return all, err
	}
	before, err := claims()
	if err != nil {
		return err
	}
	answered := v.ask(ctx)
	pause(ctx, v.rest)
	if err := v.stays(ctx, before); err != nil {
		return fmt.Errorf("what is left of a lost quorum: %w", err)
	}
	now := map[string]error{}
	for _, a := range v.ask(ctx) {
		now[copyOf(a.pod)] = a.err
	}
	for _, a := range answered {
		if failed, there := now[copyOf(a.pod)]; a.err == nil && (!there || failed != nil) {
			return fmt.Errorf("%s answered after the quorum was lost, and does not answer any more: %w", a.pod.Name, failed)
		}
	}
	return nil
}

// examine checks the data and the foreign objects.
func (v *adversary) examine(ctx context.Context, o *observers, out *verdict, healed bool) {
	fail := func(err error) {
		if err != nil {
			out.violations = append(out.violations, err.Error())
		}
	}
	o.stop()
	violations, told := o.copies.verdict()
	out.violations, out.told, out.acts = append(out.violations, violations...), told, v.person.acts()
	tally := o.witness.Stats()
	out.writes, out.gap = tally.Acknowledged, tally.LongestGap
	if len(tally.Clusters) > 1 {
		out.violations = append(out.violations, fmt.Sprintf("writes were acknowledged by %d clusters", len(tally.Clusters)))
	}
	if v.departed == nil {
		fail(v.dataHeld(ctx, o, healed, out.forgiven))
	}
	fail(o.historian.check())
	fail(v.foreignTouched(ctx, o.foreign))
}

// dataHeld checks that every acknowledged write can be read.
func (v *adversary) dataHeld(ctx context.Context, o *observers, healed, forgiven bool) error {
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	lost, err := o.witness.Lost(limited)
	if !healed {
		err = nil
	}
	if len(lost) > 0 && !forgiven {
		err = errors.Join(err, fmt.Errorf("%d of %d acknowledged writes are lost: %.200q", len(lost), o.witness.Stats().Acknowledged, lost))
	}
	return err
}
