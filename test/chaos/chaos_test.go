package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// A seed determines the whole round, so that every failure can be replayed.
func TestPlansAreDeterministic(t *testing.T) {
	all, seen := options{localkube: []string{"localkube"}}.catalogue(), map[string]bool{}
	for seed := range uint64(300) {
		p := planned(seed, all, all)
		if diff := cmp.Diff(p.String(), planned(seed, all, all).String()); diff != "" {
			t.Fatal(diff)
		}
		if got, err := chaos.Parse(p.moves.String(), all); err != nil || got.String() != p.moves.String() {
			t.Fatalf("%s is read as %s, %v", p.moves, got, err)
		}
		for _, m := range p.moves {
			what, _ := all.Named(m.Name)
			if seen[what.Object.Kind] = true; what.Object.Kind == chaos.Secret.Kind && !what.HurtsOperator() && !p.layout.tls() {
				t.Errorf("seed %d touches Secrets of a cluster without TLS", seed)
			}
		}
	}
	if len(seen) < 15 {
		t.Errorf("300 seeds touch only %d kinds", len(seen))
	}
}

func TestWithoutLocalkubeMachinesAreSafe(t *testing.T) {
	for _, m := range (options{}).catalogue() {
		if m.Verb == chaos.VerbMachine {
			t.Errorf("%s needs a machine", m.Name)
		}
	}
}

// What lasts is undone also when the run is interrupted: a frozen node or volume would stay.
func TestInterruptedRoundIsUndone(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	v, undone := newAdversary(nil), false
	v.lasting = append(v.lasting, lasting{undo: func(ctx context.Context) error {
		undone = ctx.Err() == nil
		return ctx.Err()
	}})
	if err := v.play(ctx, nil); err != nil || !undone {
		t.Errorf("undone: %v, %v", undone, err)
	}
}

// The release that a round may install is named by a flag.
func TestOtherReleaseNeedsItsImage(t *testing.T) {
	for image, want := range map[string]bool{"": false, "governor:other": true} {
		_, has := options{localkube: []string{"localkube"}, other: image}.catalogue().Named("operator-other")
		if has != want {
			t.Errorf("image %q: %v, want %v", image, has, want)
		}
	}
}

// The oracle of the copies: a volume may be deleted only while a majority answers without it.
func TestVolumeDeletionRequiresQuorum(t *testing.T) {
	members := []*pb.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	answering := func(ids ...uint64) (all []answer) {
		for _, id := range ids {
			pod := corev1.Pod{}
			pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: string(rune('a' + id - 1))},
			}}}
			all = append(all, answer{pod: pod, status: &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: id}}})
		}
		return all
	}
	see := func(ids ...uint64) evidence { return evidence{answering(ids...), members, nil} }
	unlisted := func(ids ...uint64) evidence { return evidence{answering(ids...), nil, errors.New("refused")} }
	cases := map[string]struct {
		reason      string
		before, now evidence
		byHand      bool
		want        int
	}{
		"Enough":    {"two of three answer without it", see(), see(1, 2, 3), false, 0},
		"TooFew":    {"one of three answers without it", see(1, 2), see(1, 2), false, 1},
		"ByHand":    {"the adversary deleted it itself", see(), see(1), true, 0},
		"Nothing":   {"no member answers", see(), see(), false, 1},
		"Restarted": {"the third answered just before, and is restarted", see(1, 2, 3), see(2), false, 0},
		"Last":      {"the last member is restarted after the others were removed", evidence{answering(1, 2), members[:2], nil}, unlisted(), false, 0},
		"Unlisted":  {"without a list the others of the last one count", see(1, 2), unlisted(2), false, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := copies{adversary: newAdversary(&subject{}), voted: map[string]bool{"a": true}, before: c.before}
			w.claims["a"] = c.byHand
			w.judge(corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, c.now)
			if len(w.violations) != c.want {
				t.Errorf("%s: %q", c.reason, w.violations)
			}
		})
	}
}

func TestDestroyedCopiesAreCounted(t *testing.T) {
	claim, pod := chaos.Manipulation{Object: chaos.PersistentVolumeClaim, Takes: chaos.PartVolume}, chaos.Manipulation{Object: chaos.Pod, Takes: chaos.PartPod}
	v := newAdversary(&subject{})
	if v.remember(claim, []string{"a", "b"}); v.destroyed() != 0 {
		t.Error("a deleted claim is a copy as long as its pod runs")
	}
	if v.remember(pod, []string{"p"}); v.destroyed() != 2 {
		t.Errorf("%d copies, want 2", v.destroyed())
	}
	v.removed(7)
	if v.destroyed() != 3 {
		t.Errorf("%d copies, want 3", v.destroyed())
	}
}

// A copy in memory goes with its pod: each pod that the adversary ends is a copy.
func TestVolatileCopiesAreCountedByPods(t *testing.T) {
	v := newAdversary(&subject{layout: layout{3, []string{plain, memory}}})
	pod := chaos.Manipulation{Object: chaos.Pod, Takes: chaos.PartPod}
	if v.remember(pod, []string{"p"}); v.quorumDestroyed() {
		t.Error("two of three copies are left")
	}
	if v.remember(pod, []string{"p"}); !v.quorumDestroyed() {
		t.Error("the same pod was ended twice: one of three copies is left")
	}
}

// The operator deletes a pod with volatile data only while a majority answers without it.
func TestVolatilePodDeletionRequiresQuorum(t *testing.T) {
	members := []*pb.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	born := metav1.NewTime(time.Now().Add(-time.Minute))
	answers := func(ids ...uint64) (all []answer) {
		for _, id := range ids {
			name := fmt.Sprintf("etcd-%d-0", id)
			all = append(all, answer{
				pod:    corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: born}},
				status: &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: id}},
			})
		}
		return all
	}
	cases := map[string]struct {
		reason, path string
		answering    []uint64
		want         int
	}{
		"Enough":      {"two others answer", "/api/v1/namespaces/ns/pods/etcd-1-0", []uint64{1, 2, 3}, 0},
		"TooFew":      {"one other answers", "/api/v1/namespaces/ns/pods/etcd-1-0", []uint64{1, 2}, 1},
		"StatefulSet": {"the pod goes with its StatefulSet", "/apis/apps/v1/namespaces/ns/statefulsets/etcd-1", []uint64{1, 2}, 1},
		"Another":     {"another pod is deleted", "/api/v1/namespaces/ns/pods/etcd-11-0", []uint64{1, 2}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &proxy{deletions: map[string]time.Time{}}
			p.record(httptest.NewRequest(http.MethodDelete, c.path, nil))
			v := newAdversary(&subject{arena: &arena{proxy: p}, layout: layout{3, []string{plain, memory}}})
			w := copies{adversary: v, voted: map[string]bool{}, judged: map[types.UID]bool{}, pods: map[types.UID]corev1.Pod{}, ids: map[uint64]bool{}}
			now := evidence{answers(c.answering...), members, nil}
			w.hear(now.answers, members)
			if w.judgePods(now); len(w.violations) != c.want {
				t.Errorf("%s: %q", c.reason, w.violations)
			}
		})
	}
}

func TestLayoutsAreReadBackFromTheirText(t *testing.T) {
	features := map[string]bool{}
	for seed := range uint64(500) {
		l := chosenLayout(rand.New(rand.NewPCG(seed, 1)))
		got, err := parseLayout(l.String())
		if diff := cmp.Diff(l.String(), got.String()); err != nil || diff != "" {
			t.Fatalf("%s: %v %s", l, err, diff)
		}
		for _, f := range l.features {
			features[f] = true
		}
	}
	for _, g := range groups {
		for _, f := range g {
			if _, other := applications[f]; !features[f] && !other {
				t.Errorf("no layout has %s", f)
			}
		}
	}
}

// Each stateless application has its rounds, from its own catalogue.
func TestStatelessPlans(t *testing.T) {
	a, seen := &arena{}, map[string]bool{}
	for seed := range uint64(40) {
		p, ok := a.plannedStateless(seed)
		if again, _ := a.plannedStateless(seed); !ok || again.String() != p.String() {
			t.Fatalf("%s is planned as %s", p, again)
		}
		l, err := parseLayout(p.layout.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := chaos.Parse(p.moves.String(), a.of(l)); err != nil {
			t.Error(err)
		}
		seen[l.features[0]] = true
	}
	if len(seen) != len(applications) {
		t.Errorf("planned are %v", seen)
	}
	if _, ok := (&arena{options: options{only: "etcd-"}}).plannedStateless(1); ok {
		t.Error("a round without a chosen manipulation is planned")
	}
}

// A policy would hold the deletion, and nothing would be deleted.
func TestDeletionsComeLastAndWithoutPolicy(t *testing.T) {
	all, deletions := options{}.catalogue(), 0
	for seed := range uint64(3000) {
		p := planned(seed, all, all)
		for i, move := range p.moves {
			if m, _ := all.Named(move.Name); !m.DeletesInstance() {
				continue
			}
			if deletions++; i < len(p.moves)-1 || p.layout.policy() {
				t.Errorf("seed %d: %s", seed, p)
			}
		}
	}
	if deletions < 10 {
		t.Errorf("%d deletions in 3000 seeds", deletions)
	}
}

// Several compositions are replayed, each with a layout of its own or that of the flag.
func TestReplaysHaveLayouts(t *testing.T) {
	a := &arena{options: options{config: "3-tls", again: "pod-kill@1+2s; 5-plain-memory: node-off@0+30s;3-podset:pod-evict@0"}, all: options{localkube: []string{"l"}}.catalogue()}
	plans, err := a.replays()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range plans {
		got = append(got, fmt.Sprint(p, " ", a.hurts(p.moves)))
	}
	want := []string{"3-tls pod-kill@1+2s false", "5-plain-memory node-off@0+30s true", "3-podset pod-evict@0 false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a.again = "9-what: pod-kill@0"; err == nil {
		_, err = a.replays()
	}
	if err == nil || !strings.Contains(err.Error(), `"what" is no feature`) {
		t.Errorf("a layout that does not exist: %v", err)
	}
}

func TestOptionErrors(t *testing.T) {
	if _, err := parse([]string{"-seed", "x"}); err == nil {
		t.Error("a seed that is no number is accepted")
	}
	for _, wrong := range []string{"3-maybe", "3", "0-tls", "10-tls", "3-tls-plain", "3-tls-legacy", "3-plain-memory-delete"} {
		if _, err := parseLayout(wrong); err == nil || !strings.Contains(err.Error(), "such as 3-tls") {
			t.Errorf("the layout %s: %v", wrong, err)
		}
	}
	if o, err := parse([]string{"-seconds", "7", "-seed", "5"}); err != nil || o.duration != 7*time.Second || o.seed != 5 {
		t.Errorf("%+v, %v", o, err)
	}
}

// An object that is read twice has not changed.
func TestContentHasNoPointers(t *testing.T) {
	read := func() string {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "EtcdCluster", Name: "e", Controller: new(true)}})
		return content(o)
	}
	if a, b := read(), read(); a != b {
		t.Errorf("%s is not %s", a, b)
	}
}
