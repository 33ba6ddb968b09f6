package etcd

import (
	"strconv"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// DependsOn is one of the [Abilities]. A step that starts a pod needs the ConfigMaps and Secrets
// that the pod reads, above all its bootstrap ConfigMap. Other steps need no object: what they
// rely on, such as a disabled bootstrap ConfigMap, is observed in the world.
func (Planner) DependsOn(want *etcdv1.EtcdCluster, s lifecycle.Step, kind string, obj lifecycle.Object) bool {
	switch s.Name {
	case FormCluster:
		return true
	case StartMember, Restart, RestoreStatefulSet:
		member := memberIn(want, obj.GetName())
		return (kind == "ConfigMap" || kind == "Secret") && (member == "" || member == s.Target)
	}
	return false
}

// memberIn returns the member whose object has the name. It is empty for an object of the whole
// cluster.
func memberIn(want *etcdv1.EtcdCluster, name string) string {
	rest, _ := strings.CutPrefix(name, want.Name+"-")
	number, _, found := strings.Cut(rest, "-")
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && found {
		return memberName(want, n)
	}
	return ""
}
