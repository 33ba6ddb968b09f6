package etcd_test

import (
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// besideEtcd are problems of containers that others added to the pods: etcd answers, and the pods
// are not ready.
func besideEtcd() map[string]page {
	three := func(s scene) *etcdv1.EtcdCluster { return told(wanted(3), s) }
	one, all, alone := serving(3).with("e-0", sidecar), serving(3).with("e-0", sidecar).with("e-1", sidecar).with("e-2", sidecar), serving(1).with("e-0", sidecar)
	asCreated := func(m *etcd.Member) { sidecar(m); m.Pod.Stale = false }
	memory := func(s scene) *etcdv1.EtcdCluster {
		c := told(wanted(int32(len(s.Members))), s)
		c.Spec.Storage.Medium = etcdv1.MediumMemory
		return c
	}
	restarted := func(m *etcd.Member) { down(time.Second)(m); m.Pod.OtherContainer = "" }
	corrected := three(all)
	corrected.Spec.Pod.PriorityClassName = "corrected"
	noList := all
	for _, m := range all.Members {
		noList = noList.with(m.Name, func(m *etcd.Member) { m.Role, m.ID, m.Joined, m.Health = etcd.Outside, 0, false, etcd.Unhealthy })
	}
	noList.Listed = false
	failing := func(ago time.Duration) func(*etcd.Member) {
		return func(m *etcd.Member) {
			trouble(lifecycle.PodProblemContainerCannotStart, ago)(m)
			m.Pod.OtherContainer = "init container s: s exits repeatedly"
		}
	}
	removed := func(m *etcd.Member) { m.Role, m.ID, m.Joined = etcd.Outside, 0, false }
	leftover := serving(3).with("e-1", sidecar).with("e-2", removed)
	lasting := func(m *etcd.Member) { sidecar(m); m.Volume.Terminating, m.Pod.Node = true, "n" }
	return map[string]page{
		"SidecarBesideLeftover": {"what is left of a removed member waits, and delays no repair of one that is needed", told(wanted(2), leftover), leftover, "Proceed Restart e-1 (SpecCorrected)"},
		"SidecarWithoutClaim":   {"its pod cannot be recreated, and answers until it is replaced", three(one), serving(3).with("e-0", lasting), "Proceed AddLearner e-3 (VolumeDeleted)"},
		"Sidecar":               {"a member whose sidecar cannot start takes the restored template", three(one), one, "Proceed Restart e-0 (SpecCorrected)"},
		"SidecarAsCreated":      {"another pod would have it too", three(serving(3)), serving(3).with("e-0", asCreated), "Blocked ContainerCannotStart"},
		"LastSidecar":           {"a member that answers stays if the others have no quorum", three(one), one.with("e-1", down(time.Second)), "Blocked ContainerCannotStart"},
		"AllSidecars":           {"one after the other takes the corrected spec, although none is ready", corrected, all, "Proceed Restart e-0 (SpecCorrected)"},
		"SecondSidecar":         {"the next one waits until the first answers", corrected, all.with("e-0", restarted), "Wait Serving e-0 (MemberNotServing)"},
		"UnlistedSidecars":      {"without the member list none is restarted", three(all), noList, "Blocked ContainerCannotStart"},
		"OnlySidecar":           {"a single member with a volume takes it", told(wanted(1), alone), alone, "Proceed Restart e-0 (SpecCorrected)"},
		"SidecarInMemory":       {"without a volume the pod holds the only copy", memory(alone), alone, "Blocked ContainerCannotStart"},
		"SidecarsInMemory":      {"also with two members", memory(serving(2).with("e-0", sidecar)), serving(2).with("e-0", sidecar), "Blocked ContainerCannotStart"},
		"InitFails":             {"it may fail for another reason than the spec", three(serving(3)), serving(3).with("e-2", failing(time.Minute)), "Blocked ContainerCannotStart"},
		"InitFailsForLong":      {"such a member is replaced like any that does not answer", three(serving(3)), serving(3).with("e-2", failing(time.Hour)), "Proceed RemoveMember e-2 (MemberDead)"},
	}
}
