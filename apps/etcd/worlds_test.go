package etcd_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

var noon = time.Unix(1_700_000_000, 0).UTC()

func typeName(obj any) string { return fmt.Sprintf("%T", obj) }

// wanted is a cluster with an identity.
func wanted(size int32) *etcdv1.EtcdCluster {
	c := &etcdv1.EtcdCluster{}
	c.Name, c.Namespace, c.UID = "e", "ns", "7c1b"
	c.Spec.Size, c.Spec.TLS.Mode = size, etcdv1.TLSModeDisabled
	etcd.Planner{}.Status(c, etcd.World{})
	return c
}

func deleted(c *etcdv1.EtcdCluster) *etcdv1.EtcdCluster {
	c.DeletionTimestamp = &metav1.Time{Time: noon}
	return c
}

// scene is a world with methods to change it.
type scene struct{ etcd.World }

// whole is a member that serves.
func whole(number int, version string) etcd.Member {
	name := fmt.Sprintf("e-%d", number)
	revision := etcd.Revision(wanted(3))
	return etcd.Member{
		Name: name, PeerURL: etcd.PeerURL(wanted(3), name), ID: uint64(number) + 1, Role: etcd.Voter, Joined: true,
		Set:    etcd.Set{Exists: true, Revision: revision, Version: version, Exposure: etcd.Exposed},
		Volume: etcd.Volume{Exists: true, Size: 8 << 30},
		Pod:    etcd.Pod{Exists: true, Ready: true, Revision: revision, Version: version, Exposure: etcd.Exposed, Node: "n"},
		Health: etcd.Healthy, Since: noon.Add(-time.Hour), Leads: number == 0, Index: 1000, Version: version,
	}
}

// serving is a settled world of so many members.
func serving(n int) scene {
	w := etcd.World{Listed: true, ClusterID: 0xc1}
	for i := range n {
		w.Members = append(w.Members, whole(i, etcd.Newest))
	}
	return scene{w}
}

// with changes one member, or adds it.
func (s scene) with(name string, edit func(*etcd.Member)) scene {
	members := append([]etcd.Member{}, s.Members...)
	at := len(members)
	for i := range members {
		if members[i].Name == name {
			at = i
		}
	}
	if at == len(members) {
		members = append(members, etcd.Member{Name: name})
	}
	edit(&members[at])
	s.Members = members
	return s
}

// silent: no quorum answers, so the member list is unknown.
func (s scene) silent() scene {
	for _, m := range s.Members {
		s = s.with(m.Name, func(m *etcd.Member) {
			m.ID, m.Role, m.Joined, m.PeerURL, m.Leads = 0, etcd.Outside, false, "", false
			m.Health, m.Version, m.Index, m.Pod.Ready, m.Foreign = etcd.Unknown, "", 0, false, false
		})
	}
	s.Listed, s.ClusterID = false, 0
	return s
}

// down stopped serving the given time ago.
func down(ago time.Duration) func(*etcd.Member) {
	return func(m *etcd.Member) {
		m.Health, m.Since, m.Pod.Ready, m.Leads, m.Version, m.Index = etcd.Unknown, noon.Add(-ago), false, false, "", 0
		m.Pod.Since = m.Since
	}
}

// lost has lost its volume.
func lost(m *etcd.Member) {
	down(time.Second)(m)
	m.Volume = etcd.Volume{}
}

// removed has left etcd's list by Governor, and not Kubernetes.
func removed(m *etcd.Member) {
	m.ID, m.Role, m.Joined, m.Health, m.Pod.Ready, m.Leads, m.Volume.Removing = 0, etcd.Outside, false, etcd.Unknown, false, false, true
}

// removedByHand has left etcd's list by etcdctl.
func removedByHand(m *etcd.Member) { removed(m); m.Volume.Removing = false }

// onlyClaim has nothing but a claim, which a backup may have restored.
func onlyClaim(m *etcd.Member) {
	*m = etcd.Member{Name: m.Name, Volume: etcd.Volume{Exists: true, Size: 8 << 30}}
}

// nodeLost has a volume on a node that no longer exists.
func nodeLost(m *etcd.Member) { m.Volume.NodeLost = "n9" }

// foreign has the data of another cluster, for which it serves.
func foreign(m *etcd.Member) {
	m.Health, m.Foreign, m.Leads = etcd.Unhealthy, true, false
}

// claimTerminating has a claim that is being deleted while its pod runs.
func claimTerminating(m *etcd.Member) { m.Volume.Terminating = true }

// scaledToZero has no pod since its StatefulSet was scaled.
func scaledToZero(m *etcd.Member) {
	down(time.Hour)(m)
	m.Set.Edited, m.Pod = "spec.replicas", etcd.Pod{}
}

// sidecar answers, and a container that was added to its pod cannot start. Its template is restored.
func sidecar(m *etcd.Member) {
	m.Pod.Ready, m.Pod.Stale, m.Pod.OtherContainer = false, true, "container s: image \"x\" cannot be pulled"
}

// trouble gives the pod a problem.
func trouble(t lifecycle.PodProblem, ago time.Duration) func(*etcd.Member) {
	return func(m *etcd.Member) {
		down(ago)(m)
		m.Pod.Trouble, m.Pod.Detail = t, "in Kubernetes' words"
	}
}

// told writes the observation into the status, as each reconcile does.
func told(c *etcdv1.EtcdCluster, s scene) *etcdv1.EtcdCluster {
	etcd.Planner{}.Status(c, s.World)
	return c
}

// hidden is a member that the client Service does not select yet.
func hidden(m *etcd.Member) { m.Set.Exposure, m.Pod.Exposure = etcd.Hidden, etcd.Hidden }

// unlabelled is of an older operator.
func unlabelled(m *etcd.Member) { m.Set.Exposure, m.Pod.Exposure = etcd.Unlabelled, etcd.Unlabelled }

// silenced members went silent the given time ago, and their pods are still ready.
func silenced(ago time.Duration) func(*etcd.Member) {
	return func(m *etcd.Member) {
		down(ago)(m)
		m.Pod.Ready, m.Pod.Since = true, noon.Add(-time.Hour)
	}
}

// held has a StatefulSet whose deletion the finalizer of another controller delays: its pod
// continues to run.
func held(m *etcd.Member) {
	m.Set = etcd.Set{}
	m.Obstacle = etcd.Obstacle{Kind: "StatefulSet", Name: m.Name, Going: true, Finalizers: "example.com/hold"}
}

// claimTaken is a learner whose claim Governor did not create.
func claimTaken(m *etcd.Member) {
	m.ID, m.Role = 9, etcd.Learner
	m.Obstacle = etcd.Obstacle{Kind: "PersistentVolumeClaim", Name: m.Name + "-hash"}
}
