module kubesteward.io/monitoring/prometheus-operator

go 1.25.0

// Only its example/prometheus-operator-crd is read; nothing is built.
require github.com/prometheus-operator/prometheus-operator v0.94.1
