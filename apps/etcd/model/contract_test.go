package model_test

import (
	"errors"
	"fmt"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/etcd/contract"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// TestContract checks that the model behaves as real etcd; test/e2e runs the same suite.
func TestContract(t *testing.T) {
	contract.Run(t, func(*testing.T) contract.System { return modelled{newSystem(1)} })
}

// modelled implements contract.System.
type modelled struct{ *system }

func (m modelled) Apply(_ *testing.T, edit func(*etcdv1.EtcdClusterSpec)) { edit(&m.want.Spec) }

func (m modelled) Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *etcdv1.EtcdCluster {
	t.Helper()
	m.settles(t, outcome, reason)
	return m.want.DeepCopy()
}

func (m modelled) Rests(t *testing.T) {
	t.Helper()
	for range 1000 {
		m.turn(t)
	}
}

func (m modelled) Await(t *testing.T, what string, holds func() error) {
	t.Helper()
	var err error
	for range 1000 {
		if err = holds(); err == nil {
			return
		}
		m.turn(t)
	}
	t.Fatalf("%s: %v", what, err)
}

func (m modelled) Observe(*testing.T) etcd.World { return m.model.Observe(m.now) }

func (m modelled) Act(t *testing.T, s lifecycle.Step) error {
	t.Helper()
	return m.model.Act(m.want, m.Observe(t), s, sim.NoFaults())
}

func (m modelled) Fill(t *testing.T) {
	t.Helper()
	m.Await(t, "the log is full", func() error {
		if !m.model.Fill() {
			return errors.New("no member leads")
		}
		return nil
	})
}

func (m modelled) LosePods(_ *testing.T, members ...string) {
	for _, name := range members {
		m.model.LosePod(name)
	}
}

func (m modelled) LoseVolumes(_ *testing.T, members ...string) {
	for _, name := range members {
		m.model.LoseVolume(name)
	}
}

func (m modelled) LoseSet(_ *testing.T, member string) { m.model.LoseSet(member) }

func (m modelled) DeleteClaims(_ *testing.T, members ...string) {
	for _, name := range members {
		m.model.DeleteClaim(name)
	}
}

func (m modelled) ScaleSet(_ *testing.T, member string)      { m.model.ScaleSet(member) }
func (m modelled) EditSet(_ *testing.T, member string)       { m.model.EditSet(member) }
func (m modelled) OrphanSet(_ *testing.T, member string)     { m.model.OrphanSet(member) }
func (m modelled) StripPod(_ *testing.T, member, _ string)   { m.model.StripPod(member) }
func (m modelled) StripClaim(_ *testing.T, member, _ string) { m.model.StripClaim(member) }

func (m modelled) RespellURL(t *testing.T, member string) {
	t.Helper()
	m.Await(t, "a user respells the URL of "+member, func() error { return m.model.RespellURL(member) })
}

func (m modelled) RaiseCorrupt(_ *testing.T, member string) { m.model.RaiseCorrupt(member) }

func (m modelled) RemoveByHand(t *testing.T, member string) {
	t.Helper()
	m.Await(t, "a user removes "+member, func() error { return m.model.RemoveByHand(member) })
}

func (m modelled) AddByHand(t *testing.T, role etcd.Role) {
	t.Helper()
	m.Await(t, fmt.Sprintf("a user adds a %s", role), func() error {
		_, err := m.model.AddByHand(role)
		return err
	})
}

func (m modelled) HoldSet(_ *testing.T, member string)  { m.model.HoldSet(member) }
func (m modelled) LetGo(*testing.T, string)             { m.model.LetGo() }
func (m modelled) TakeName(_ *testing.T, member string) { m.model.TakeName(member) }
