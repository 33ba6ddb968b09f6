package driver

import (
	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// setAsideForeignClaims removes claims that have the name of a new member's and that Governor did not
// create for it. No step reads or changes them; [Driver.findObstacles] reports them.
func setAsideForeignClaims(want *etcdv1.EtcdCluster, p *parts, seen etcd.World) {
	p.foreignClaims = map[string]*corev1.PersistentVolumeClaim{}
	for i := range seen.Members {
		m := &seen.Members[i]
		claim := p.claims[m.Name]
		if claim == nil || etcd.UsesClaim(want, seen, m.Name, claim.Annotations[etcd.AnnotationMember]) {
			continue
		}
		p.foreignClaims[m.Name] = claim
		delete(p.claims, m.Name)
		m.Volume = etcd.Volume{}
	}
}
