package event

// catalogEvents are the events of the configuration streams.
var catalogEvents = []definition{}
