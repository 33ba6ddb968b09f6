package v1

import corev1 "k8s.io/api/core/v1"

// PodSettings are added to every member's pod. A change restarts the members one at a time.
type PodSettings struct {
	// labels are additional labels. The operator's own labels take precedence.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are additional annotations.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector selects nodes by their labels.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// affinity replaces the operator's affinity, which prefers a separate node for each member.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// tolerations are the taints that the pods tolerate.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints replace the operator's constraints, which spread members over
	// zones where possible.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the name of the pods' priority class.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// serviceAccountName is the name of the pods' service account. No token is mounted.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// resources are the requests and limits of etcd's container. If neither is set, it requests
	// 50m CPU and 128Mi memory.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// securityContext replaces the operator's security context, which meets the restricted Pod
	// Security Standard with user 10001.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// terminationGracePeriodSeconds is the time that etcd has for a graceful stop, 1 to 600; the
	// default is 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// env is the environment of etcd's container, such as ETCD_HEARTBEAT_INTERVAL. Variables for
	// settings of the operator (names, URLs, TLS, data directory, membership) are rejected.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.all(e, !e.name.startsWith('ETCD_NAME') && !e.name.startsWith('ETCD_DATA_DIR') && !e.name.startsWith('ETCD_WAL_DIR') && !e.name.startsWith('ETCD_CONFIG_FILE') && !e.name.startsWith('ETCD_FORCE_NEW_CLUSTER') && !e.name.startsWith('ETCD_STRICT_RECONFIG_CHECK') && !e.name.startsWith('ETCD_DISCOVERY') && !e.name.startsWith('ETCD_PROXY') && !e.name.startsWith('ETCD_ENABLE_V2') && !e.name.startsWith('ETCD_INITIAL_CLUSTER') && !e.name.startsWith('ETCD_INITIAL_ADVERTISE') && !e.name.startsWith('ETCD_LISTEN_') && !e.name.startsWith('ETCD_ADVERTISE_') && !e.name.startsWith('ETCD_PEER_') && !e.name.startsWith('ETCD_CERT_FILE') && !e.name.startsWith('ETCD_KEY_FILE') && !e.name.startsWith('ETCD_TRUSTED_CA_FILE') && !e.name.startsWith('ETCD_CA_FILE') && !e.name.startsWith('ETCD_CLIENT_CERT_AUTH') && !e.name.startsWith('ETCD_AUTO_TLS'))",message="spec.pod.env must not set what the operator decides: ETCD_NAME, ETCD_DATA_DIR, ETCD_WAL_DIR, ETCD_CONFIG_FILE, ETCD_FORCE_NEW_CLUSTER, ETCD_STRICT_RECONFIG_CHECK, ETCD_DISCOVERY*, ETCD_PROXY*, ETCD_ENABLE_V2*, ETCD_INITIAL_*, ETCD_LISTEN_*, ETCD_ADVERTISE_*, ETCD_PEER_* and the TLS files"
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// args are additional flags of etcd, such as "--heartbeat-interval=200". Flags for settings
	// of the operator (names, URLs, TLS, data directory, membership) and of spec.options are
	// rejected.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=500
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^--[a-z][-a-z0-9]*(=.*)?$'))",message="spec.pod.args: each must be a flag with its value, such as \"--heartbeat-interval=200\""
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^--(name|data-dir|wal-dir|config-file|force-new-cluster|strict-reconfig-check|discovery.*|proxy.*|enable-v2|initial-(cluster.*|advertise.*)|listen-.*|advertise-.*|(peer-)?(cert-file|key-file|trusted-ca-file|ca-file|client-cert-auth|auto-tls))(=.*)?$'))",message="spec.pod.args must not set what the operator decides: --name, --data-dir, --wal-dir, --config-file, --force-new-cluster, --strict-reconfig-check, --discovery*, --proxy*, --enable-v2, --initial-cluster*, --initial-advertise-*, --listen-*, --advertise-* and the TLS files"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^--quota-backend-bytes(=.*)?$'))",message="spec.pod.args must not set --quota-backend-bytes: use spec.options.quota"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^--auto-compaction-(mode|retention)(=.*)?$'))",message="spec.pod.args must not set --auto-compaction-mode and --auto-compaction-retention: use spec.options.compactionMode and spec.options.compactionRetention"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^--snapshot-count(=.*)?$'))",message="spec.pod.args must not set --snapshot-count: use spec.options.snapshotCount"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^--(version|feature-gates|(experimental-)?(initial-corrupt-check|peer-skip-client-san-verification)|logger)(=.*)?$'))",message="spec.pod.args must not set --version, with which etcd only prints its version, nor what the operator decides: --feature-gates, --initial-corrupt-check, --peer-skip-client-san-verification and --logger"
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// imagePullSecrets are the Secrets for pulling the image.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}
