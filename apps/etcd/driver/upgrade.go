package driver

import (
	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/pod"
)

// readLogs adds how often members write snapshots, whether etcd 3.7 may be unable to read their
// logs, and what their termination messages show about their data.
func readLogs(want *etcdv1.EtcdCluster, p parts, responses map[string]answer, members []etcd.Member) {
	for i := range members {
		m := &members[i]
		if m.Unmanaged {
			continue
		}
		if set := p.sets[m.Name]; set != nil {
			m.Set.Snapshots = etcd.Snapshots(set.Annotations[etcd.AnnotationSnapshots])
		}
		lastWords := ""
		if found := p.pods[m.Name]; found != nil {
			m.Pod.Snapshots = etcd.Snapshots(found.Annotations[etcd.AnnotationSnapshots])
			lastWords = pod.Of(found, etcd.Name).LastTerminationMessage
		}
		hidden := p.pods[m.Name] != nil && etcd.HidesData(p.pods[m.Name].Spec)
		m.Volume.Spoiled = !hidden && m.Bootstrap == etcd.BootstrapDisabled && !m.Pod.Ready && etcd.Diagnose(lastWords) != ""
		m.OldLog = etcd.OldLog(want, *m, responses[m.Name].status.GetStorageVersion(), lastWords)
		if words := etcd.FatalMessage(lastWords); words != "" && !m.Pod.Ready {
			if m.Pod.LastWords = words; m.Pod.Detail != "" {
				m.Pod.Detail += ": " + words
			}
		}
	}
}
