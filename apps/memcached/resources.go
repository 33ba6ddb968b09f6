package memcached

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// repository has the official images, by version.
	repository = "docker.io/library/memcached"
	// newest is what an instance gets that names neither version nor image. It is
	// chosen once, so raising it restarts nothing.
	newest = "1.6.18"
	// rolloutDeadline is after how many seconds without progress Kubernetes calls
	// a rollout stuck.
	rolloutDeadline = 300
)

// Resources is a Deployment, a headless Service and a PodDisruptionBudget.
func (Planner) Resources(want *cachev1.Memcached, _ World) ([]lifecycle.Object, error) {
	return []lifecycle.Object{service(want), disruptionBudget(want), deployment(want)}, nil
}

// selector has the instance in it: two instances in a namespace never share pods.
// It can never change, because a Deployment's selector cannot.
func selector(want *cachev1.Memcached) map[string]string {
	return map[string]string{
		lifecycle.LabelName:     Name,
		lifecycle.LabelInstance: want.Name,
		lifecycle.LabelApp:      Name,
	}
}

func named(want *cachev1.Memcached) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: want.Name, Labels: selector(want)}
}

// image is the declared one, else the default.
func image(want *cachev1.Memcached) string {
	switch {
	case want.Spec.Image != "":
		return want.Spec.Image
	case want.Spec.Version != "":
		return repository + ":" + want.Spec.Version
	}
	return defaultImage(want)
}

// defaultImage is the one chosen when the object was made.
func defaultImage(want *cachev1.Memcached) string {
	if want.Status.DefaultImage != "" {
		return want.Status.DefaultImage
	}
	return repository + ":" + newest
}

// service is headless: memcached clients spread keys over servers by themselves,
// so they need every server's address. A balanced address would lose keys.
func service(want *cachev1.Memcached) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: named(want),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  selector(want),
			Ports: []corev1.ServicePort{{
				Name: Name, Port: want.Spec.ContainerPort, Protocol: corev1.ProtocolTCP,
				TargetPort: intstr.FromString(Name),
			}},
		},
	}
}

// disruptionBudget lets nodes be drained one server at a time, also when there is
// only one: a cache must not keep a node from being drained.
func disruptionBudget(want *cachev1.Memcached) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: named(want),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &one,
			Selector:       &metav1.LabelSelector{MatchLabels: selector(want)},
		},
	}
}

// deployment replaces pods one after another and never has fewer than wanted.
func deployment(want *cachev1.Memcached) *appsv1.Deployment {
	quarter, none := intstr.FromString("25%"), intstr.FromInt32(0)
	return &appsv1.Deployment{
		ObjectMeta: deploymentMeta(want),
		Spec: appsv1.DeploymentSpec{
			Replicas:                &want.Spec.Size,
			Selector:                &metav1.LabelSelector{MatchLabels: selector(want)},
			RevisionHistoryLimit:    new(int32(3)),
			ProgressDeadlineSeconds: new(int32(rolloutDeadline)),
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &none},
			},
			Template: template(want),
		},
	}
}

// AnnotationTemplate on the Deployment is the digest of its pods' template.
const AnnotationTemplate = "governor.dev/template"

func deploymentMeta(want *cachev1.Memcached) metav1.ObjectMeta {
	meta := named(want)
	meta.Annotations = map[string]string{AnnotationTemplate: Template(want)}
	return meta
}

// Template is a digest of the pods' template.
func Template(want *cachev1.Memcached) string {
	return lifecycle.Digest(template(want))
}

// template is the pod. A change here restarts the caches of everyone who upgrades
// the operator: the golden files keep it from happening unnoticed.
func template(want *cachev1.Memcached) corev1.PodTemplateSpec {
	pod := want.Spec.Pod
	labels := map[string]string{}
	maps.Copy(labels, pod.Labels)
	maps.Copy(labels, selector(want))
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations},
		Spec: corev1.PodSpec{
			Containers:                   []corev1.Container{container(want)},
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			SecurityContext:              podSecurity(want.Spec.ContainerPort),
			TopologySpreadConstraints:    spread(want),
			NodeSelector:                 pod.NodeSelector,
			Tolerations:                  pod.Tolerations,
			PriorityClassName:            pod.PriorityClassName,
			ImagePullSecrets:             pod.ImagePullSecrets,
		},
	}
}

// spread prefers other zones, then other nodes, and refuses none.
func spread(want *cachev1.Memcached) []corev1.TopologySpreadConstraint {
	var all []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
		all = append(all, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: selector(want)},
		})
	}
	return all
}

// Images implements lifecycle.ImageLister. The Deployment runs its image without a step.
func (Planner) Images(want *cachev1.Memcached, _ []lifecycle.Step) []string {
	return []string{image(want)}
}
