package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/etcd/model"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// upgrades are the versions that users go through, in their order.
var upgrades = []string{"3.4.23", "3.5.21", "3.5.35", "3.6.16", "3.7"}

func cluster(chance *rand.Rand) *etcdv1.EtcdCluster {
	c := &etcdv1.EtcdCluster{}
	c.Name, c.Namespace, c.UID = "e", "ns", "b6b1a3a0"
	size := resource.MustParse("1Gi")
	c.Spec.Size, c.Spec.Storage.Size = 1+2*int32(chance.IntN(3)), &size
	c.Spec.TLS.Mode = etcdv1.Off
	c.Spec.Version = upgrades[chance.IntN(2)]
	if chance.IntN(4) == 0 {
		c.Spec.Storage.Medium = etcdv1.Memory
	}
	return c
}

// edit is a change of mind: of the size, the version, the pods, the volumes.
func edit(want *etcdv1.EtcdCluster, chance *rand.Rand) {
	switch chance.IntN(8) {
	case 0:
		for i, v := range upgrades[:len(upgrades)-1] {
			if v == want.Spec.Version {
				want.Spec.Version = upgrades[i+1]
				return
			}
		}
	case 1:
		want.Spec.Pod.PriorityClassName = fmt.Sprintf("class-%d", chance.IntN(3))
	case 2:
		if want.Spec.Storage.Medium != etcdv1.Memory {
			size := want.Spec.Storage.Size.DeepCopy()
			size.Add(resource.MustParse("1Gi"))
			want.Spec.Storage.Size = &size
		}
	default:
		want.Spec.Size = []int32{1, 2, 3, 3, 4, 5, 7}[chance.IntN(7)]
	}
}

// kept: at rest there are exactly the wanted members, whole, with the wanted
// version, their doors shut, and nothing of anybody else.
func kept(want *etcdv1.EtcdCluster, seen etcd.World) error {
	if len(seen.Members) != int(want.Spec.Size) || !seen.Listed {
		return fmt.Errorf("%d members, wanted %d: %+v", len(seen.Members), want.Spec.Size, seen.Members)
	}
	for _, m := range seen.Members {
		whole := m.Role == etcd.Voter && m.Set.Exists && m.Volume.Exists && m.Pod.Ready && m.Health == etcd.Healthy
		if !whole || m.Door != etcd.Shut || m.Pod.Revision != etcd.Revision(want) || m.Version != want.Status.Version.Target {
			return fmt.Errorf("%s is not as wanted: %+v", m.Name, m)
		}
		if want.Spec.Storage.Medium != etcdv1.Memory && m.Volume.Size != want.Spec.Storage.Size.Value() {
			return fmt.Errorf("the volume of %s has %d bytes", m.Name, m.Volume.Size)
		}
	}
	return nil
}

func life() sim.Life[*etcdv1.EtcdCluster, etcd.World] {
	return sim.Life[*etcdv1.EtcdCluster, etcd.World]{
		Planner: etcd.Planner{},
		Gates:   etcd.Gates(),
		Begin: func(chance *rand.Rand) (*etcdv1.EtcdCluster, sim.Model[*etcdv1.EtcdCluster, etcd.World]) {
			c := cluster(chance)
			return c, model.New(c.Spec.Storage.Medium == etcdv1.Memory)
		},
		Edit: edit, Kept: kept, Storm: 150, Patience: 1500,
	}
}

func TestLives(t *testing.T) {
	began := time.Now()
	sim.Lives(t, life(), 300)
	t.Logf("%s", time.Since(began))
}
