package v1

import corev1 "k8s.io/api/core/v1"

// PodSettings are added to every member's pod. A change restarts the members, one
// after another.
type PodSettings struct {
	// Labels to add. Those that the operator sets win.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to add.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels that a node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Affinity instead of the operator's, which prefers a node of its own for each
	// member.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// Taints that the pods tolerate.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Spreading instead of the operator's, which spreads members over zones where
	// it can.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// Name of the pods' priority class.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Name of the pods' service account. No token is mounted.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Requests and limits of etcd's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// Security context instead of the operator's, which meets the restricted Pod
	// Security Standard with user 10001.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// Seconds that etcd has for a graceful stop; without it 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Environment of etcd's container, such as ETCD_HEARTBEAT_INTERVAL. What the
	// operator decides (names, URLs, TLS, data directory, membership) is refused.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.all(e, !e.name.startsWith('ETCD_NAME') && !e.name.startsWith('ETCD_DATA_DIR') && !e.name.startsWith('ETCD_WAL_DIR') && !e.name.startsWith('ETCD_CONFIG_FILE') && !e.name.startsWith('ETCD_FORCE_NEW_CLUSTER') && !e.name.startsWith('ETCD_STRICT_RECONFIG_CHECK') && !e.name.startsWith('ETCD_DISCOVERY') && !e.name.startsWith('ETCD_PROXY') && !e.name.startsWith('ETCD_ENABLE_V2') && !e.name.startsWith('ETCD_INITIAL_CLUSTER') && !e.name.startsWith('ETCD_INITIAL_ADVERTISE') && !e.name.startsWith('ETCD_LISTEN_') && !e.name.startsWith('ETCD_ADVERTISE_') && !e.name.startsWith('ETCD_PEER_') && !e.name.startsWith('ETCD_CERT_FILE') && !e.name.startsWith('ETCD_KEY_FILE') && !e.name.startsWith('ETCD_TRUSTED_CA_FILE') && !e.name.startsWith('ETCD_CA_FILE') && !e.name.startsWith('ETCD_CLIENT_CERT_AUTH') && !e.name.startsWith('ETCD_AUTO_TLS'))",message="spec.pod.env must not set what the operator decides: ETCD_NAME, ETCD_DATA_DIR, ETCD_WAL_DIR, ETCD_CONFIG_FILE, ETCD_FORCE_NEW_CLUSTER, ETCD_STRICT_RECONFIG_CHECK, ETCD_DISCOVERY*, ETCD_PROXY*, ETCD_ENABLE_V2*, ETCD_INITIAL_*, ETCD_LISTEN_*, ETCD_ADVERTISE_*, ETCD_PEER_* and the TLS files"
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// Further flags of etcd, such as "--heartbeat-interval=200". What the operator
	// decides (names, URLs, TLS, data directory, membership) is refused.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=500
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^--[a-z][-a-z0-9]*(=.*)?$'))",message="spec.pod.args: each must be a flag with its value, such as \"--heartbeat-interval=200\""
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^--(name|data-dir|wal-dir|config-file|force-new-cluster|strict-reconfig-check|discovery.*|proxy.*|enable-v2|initial-(cluster.*|advertise.*)|listen-.*|advertise-.*|(peer-)?(cert-file|key-file|trusted-ca-file|ca-file|client-cert-auth|auto-tls))(=.*)?$'))",message="spec.pod.args must not set what the operator decides: --name, --data-dir, --wal-dir, --config-file, --force-new-cluster, --strict-reconfig-check, --discovery*, --proxy*, --enable-v2, --initial-cluster*, --initial-advertise-*, --listen-*, --advertise-* and the TLS files"
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// Secrets with which to pull the image.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}
