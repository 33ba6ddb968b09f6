package etcd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// An upgrade through a minor release runs the images of both.
func TestImagesOfPlan(t *testing.T) {
	restart := func(version string) lifecycle.Step {
		return lifecycle.Step{Name: etcd.Restart, Args: map[string]string{etcd.ArgVersion: version}}
	}
	steps := []lifecycle.Step{{Name: etcd.MoveLeader}, restart("3.6.16"), restart("3.6.16"), restart("3.7.3")}
	for image, want := range map[string][]string{
		"":          {"quay.io/coreos/etcd:v3.6.16", "quay.io/coreos/etcd:v3.7.3"},
		"mine:edge": {"mine:edge"},
	} {
		got := etcd.Planner{}.Images(&etcdv1.EtcdCluster{Spec: etcdv1.EtcdClusterSpec{Image: image}}, steps)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
