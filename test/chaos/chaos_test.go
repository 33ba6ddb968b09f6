package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			if seen[what.Object.Kind] = true; what.Object.Kind == chaos.Secret.Kind && !p.layout.tls {
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
	v.undos = append(v.undos, func(ctx context.Context) error {
		undone = ctx.Err() == nil
		return ctx.Err()
	})
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
	cases := map[string]struct {
		reason    string
		answering []answer
		byHand    bool
		want      int
	}{
		"Enough":  {"two of three answer without it", answering(1, 2, 3), false, 0},
		"TooFew":  {"one of three answers without it", answering(1, 2), false, 1},
		"ByHand":  {"the adversary deleted it itself", answering(1), true, 0},
		"Nothing": {"no member answers", nil, false, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := copies{adversary: newAdversary(nil), voted: map[string]bool{"a": true}}
			w.claims["a"] = c.byHand
			w.judge(corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, c.answering, members, nil)
			if len(w.violations) != c.want {
				t.Errorf("%s: %q", c.reason, w.violations)
			}
		})
	}
}

func TestDestroyedCopiesAreCounted(t *testing.T) {
	claim, pod := chaos.Manipulation{Object: chaos.PersistentVolumeClaim, Takes: chaos.PartVolume}, chaos.Manipulation{Object: chaos.Pod, Takes: chaos.PartPod}
	v := newAdversary(nil)
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

func TestNamesWayOut(t *testing.T) {
	for words, want := range map[string]bool{
		"QuorumAway: 1 of 3 voters have their data.":                                 false,
		"VersionRefused: etcd 3.6 cannot go back. Set spec.version to 3.6 or newer.": true,
	} {
		if namesWayOut(words) != want {
			t.Errorf("%q: want %v", words, want)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	if _, err := parse([]string{"-seed", "x"}); err == nil {
		t.Error("a seed that is no number is accepted")
	}
	if _, err := parseLayout("3-maybe"); err == nil {
		t.Error("a layout without a TLS mode is accepted")
	}
	if o, err := parse([]string{"-seconds", "7", "-seed", "5"}); err != nil || o.duration != 7*time.Second || o.seed != 5 {
		t.Errorf("%+v, %v", o, err)
	}
}
