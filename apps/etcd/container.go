package etcd

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	repository = "quay.io/coreos/etcd"
	dataDir    = "/var/lib/etcd"
	peerTLS    = "/etc/etcd/peer-tls"
	serverTLS  = "/etc/etcd/server-tls"
	// user is the UID that etcd runs as. etcd's images set none.
	user = 10001
	// startupSeconds limits a member's start. Before it serves, a member reads up to 8Gi from
	// disk, or copies that from the leader.
	startupSeconds = 30 * 60
)

func image(want *etcdv1.EtcdCluster, v version) string {
	switch {
	case want.Spec.Image != "":
		return want.Spec.Image
	case want.Spec.Repository != "":
		return want.Spec.Repository + ":v" + v.String()
	}
	return repository + ":v" + v.String()
}

func container(want *etcdv1.EtcdCluster, seen World, member string, v version) corev1.Container {
	return corev1.Container{
		Name:    Name,
		Image:   image(want, v),
		Command: []string{"etcd"},
		Args:    append(arguments(want, seen, member, v), want.Spec.Pod.Args...),
		Env:     environment(want, member),
		Ports: []corev1.ContainerPort{
			{Name: "client", ContainerPort: clientPort, Protocol: corev1.ProtocolTCP},
			{Name: "peer", ContainerPort: peerPort, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: metricsOnly, Protocol: corev1.ProtocolTCP},
		},
		Resources:      requirements(want),
		StartupProbe:   connectProbe(v, 1, startupSeconds),
		LivenessProbe:  connectProbe(v, 10, 6),
		ReadinessProbe: readiness(v),
		VolumeMounts:   mounts(want),
		// etcd's termination message shows the state of its data: see Diagnose.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          lifecycle.RestrictedContainer(),
	}
}

func arguments(want *etcdv1.EtcdCluster, seen World, member string, v version) []string {
	args := []string{
		"--name=" + member,
		"--data-dir=" + dataDir + "/data",
		fmt.Sprintf("--listen-peer-urls=%s://0.0.0.0:%d", peerScheme(want), peerPort),
		fmt.Sprintf("--listen-client-urls=%s://0.0.0.0:%d", clientScheme(want), clientPort),
		"--initial-advertise-peer-urls=" + PeerURL(want, member),
		"--advertise-client-urls=" + ClientURL(want, member),
	}
	args = append(args, capabilities(v)...)
	args = append(args, encryption(want, seen, v)...)
	return append(args, options(want, seen)...)
}

// capabilities returns the flags that a version supports. Stable flags keep their names;
// experimental ones were renamed in 3.6 (CHANGELOG-3.6).
func capabilities(v version) []string {
	var args []string
	if v.can(metricsPort) {
		args = append(args, fmt.Sprintf("--listen-metrics-urls=http://0.0.0.0:%d", metricsOnly))
	}
	if v.minor == jsonLogs {
		args = append(args, "--logger=zap")
	}
	switch {
	case v.can(featureGates):
		args = append(args, "--feature-gates=InitialCorruptCheck=true")
	case v.can(corruptCheck):
		args = append(args, "--experimental-initial-corrupt-check=true")
	}
	return args
}

func encryption(want *etcdv1.EtcdCluster, seen World, v version) []string {
	var args []string
	if peersEncrypt(want) {
		cert, key, ca := files(seen, "peer")
		args = append(args, "--peer-client-cert-auth=true", "--peer-cert-file="+peerTLS+cert,
			"--peer-key-file="+peerTLS+key, "--peer-trusted-ca-file="+peerTLS+ca)
		args = append(args, skipClientSANCheck(want, v)...)
	}
	if ClientsEncrypt(want) {
		cert, key, ca := files(seen, "server")
		args = append(args, "--client-cert-auth=true", "--cert-file="+serverTLS+cert,
			"--key-file="+serverTLS+key, "--trusted-ca-file="+serverTLS+ca)
	}
	return args
}

// skipClientSANCheck makes members accept any peer certificate of the cluster's own authority,
// of which only members have certificates. Otherwise etcd also resolves the names in it and
// compares addresses. The name of a new pod may not be in DNS yet: joining members were refused,
// exited, and restarted.
func skipClientSANCheck(want *etcdv1.EtcdCluster, v version) []string {
	switch {
	case !managed(want):
		return nil
	case v.can(featureGates):
		return []string{"--peer-skip-client-san-verification=true"}
	case v.can(skipsNames):
		return []string{"--experimental-peer-skip-client-san-verification=true"}
	}
	return nil
}

func files(seen World, role string) (cert, key, ca string) {
	if seen.LegacyKeys {
		return "/" + role + ".crt", "/" + role + ".key", "/" + role + "-ca.crt"
	}
	return "/tls.crt", "/tls.key", "/ca.crt"
}

func options(want *etcdv1.EtcdCluster, seen World) []string {
	var args []string
	o := want.Spec.Options
	if limit := quota(want, seen); limit > 0 {
		args = append(args, fmt.Sprintf("--quota-backend-bytes=%d", limit))
	}
	if o.CompactionMode != "" {
		args = append(args, "--auto-compaction-mode="+strings.ToLower(string(o.CompactionMode)),
			"--auto-compaction-retention="+o.CompactionRetention)
	}
	if o.SnapshotCount > 0 {
		args = append(args, fmt.Sprintf("--snapshot-count=%d", o.SnapshotCount))
	}
	return args
}

// environment reads the bootstrap ConfigMap. The kubelet resolves it at each start of the
// container, and etcd uses the variables only if it has no data.
func environment(want *etcdv1.EtcdCluster, member string) []corev1.EnvVar {
	from := func(name, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: BootstrapConfigName(member)}, Key: key,
		}}}
	}
	bootstrap := []corev1.EnvVar{
		from("ETCD_INITIAL_CLUSTER", "cluster"), from("ETCD_INITIAL_CLUSTER_STATE", "state"),
		from("ETCD_INITIAL_CLUSTER_TOKEN", "token"),
	}
	return append(append([]corev1.EnvVar{}, want.Spec.Pod.Env...), bootstrap...)
}

func requirements(want *etcdv1.EtcdCluster) corev1.ResourceRequirements {
	r := *want.Spec.Pod.Resources.DeepCopy()
	if r.Requests == nil && r.Limits == nil {
		r.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		}
	}
	return r
}

// connectProbe never checks the quorum: the kubelet must not kill a member that waits for the
// others. A successful connection is sufficient, because etcd exits when it cannot continue.
func connectProbe(v version, seconds, failures int32) *corev1.Probe {
	where := "metrics"
	if !v.can(metricsPort) {
		where = "peer"
	}
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(where)}},
		PeriodSeconds: seconds, FailureThreshold: failures, TimeoutSeconds: 5,
	}
}

// readiness queries /health, which is a linearizable read. A full database is no reason to stop
// reads, and neither is an alarm of another member: every member reports every alarm. Before 3.5 each query writes an entry of the old API to the log, and 3.6 panics on such
// an entry (etcd-io/etcd issue 20809). Those versions get a TCP probe, and the operator's own
// reads supplement it.
func readiness(v version) *corev1.Probe {
	p := &corev1.Probe{PeriodSeconds: 2, FailureThreshold: 2, TimeoutSeconds: 3}
	if !v.can(v3Health) {
		p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("client")}
		return p
	}
	p.HTTPGet = &corev1.HTTPGetAction{Path: "/health?exclude=NOSPACE&exclude=CORRUPT", Port: intstr.FromString("metrics"), Scheme: corev1.URISchemeHTTP}
	return p
}

func mounts(want *etcdv1.EtcdCluster) []corev1.VolumeMount {
	all := []corev1.VolumeMount{{Name: DataVolume, MountPath: dataDir}}
	if peersEncrypt(want) {
		all = append(all, corev1.VolumeMount{Name: "peer-tls", MountPath: peerTLS, ReadOnly: true})
	}
	if ClientsEncrypt(want) {
		all = append(all, corev1.VolumeMount{Name: "server-tls", MountPath: serverTLS, ReadOnly: true})
	}
	return all
}

// Images is one of the [Abilities]: it returns the images of the versions that the steps start,
// without duplicates.
func (Planner) Images(want *etcdv1.EtcdCluster, steps []lifecycle.Step) []string {
	var all []string
	for _, s := range steps {
		v, err := parse(s.Args[ArgVersion])
		if err == nil && !slices.Contains(all, image(want, v)) {
			all = append(all, image(want, v))
		}
	}
	return all
}
