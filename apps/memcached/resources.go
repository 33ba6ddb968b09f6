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
	// repository is the repository of the official images, tagged by version.
	repository = "docker.io/library/memcached"
	// newest is the version of an instance that sets neither version nor image. It is
	// recorded at creation, so raising it restarts nothing.
	newest = "1.6.18"
	// rolloutDeadline is the Deployment's progress deadline in seconds.
	rolloutDeadline = 300
)

// Resources returns a Deployment, a headless Service and a PodDisruptionBudget.
func (Planner) Resources(want *cachev1.Memcached, _ World) ([]lifecycle.Object, error) {
	return []lifecycle.Object{service(want), disruptionBudget(want), deployment(want)}, nil
}

// selector includes the instance, so two instances in a namespace never share pods. It
// must never change, because a Deployment's selector is immutable.
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

// image returns the declared image, or the default.
func image(want *cachev1.Memcached) string {
	switch {
	case want.Spec.Image != "":
		return want.Spec.Image
	case want.Spec.Version != "":
		return repository + ":" + want.Spec.Version
	}
	return defaultImage(want)
}

// defaultImage returns the default image that was recorded at creation.
func defaultImage(want *cachev1.Memcached) string {
	if want.Status.DefaultImage != "" {
		return want.Status.DefaultImage
	}
	return repository + ":" + newest
}

// service is headless. memcached clients spread keys over the servers, so they need every
// server's address. A load-balanced address would lose keys.
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

// disruptionBudget lets node drains evict one server at a time, also the only one: a cache
// must not block a drain.
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

// deployment rolls out one surge at a time and never runs fewer pods than declared.
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

// AnnotationTemplate is the annotation on the Deployment with the digest of its pod
// template.
const AnnotationTemplate = "governor.dev/template"

func deploymentMeta(want *cachev1.Memcached) metav1.ObjectMeta {
	meta := named(want)
	meta.Annotations = map[string]string{AnnotationTemplate: Template(want)}
	return meta
}

// Template returns the digest of the pod template.
func Template(want *cachev1.Memcached) string {
	return lifecycle.Digest(template(want))
}

// template returns the pod template. A change here restarts the caches of every user that
// upgrades the operator. The golden files guard against an accidental change.
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

// spread prefers different zones, then different nodes, and is never a hard constraint.
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

// Images is one of the [Abilities]. The Deployment runs its image without a step.
func (Planner) Images(want *cachev1.Memcached, _ []lifecycle.Step) []string {
	return []string{image(want)}
}
