"""What the console asks of a process: explanations, configured quotas, changes of quotas, and an overview.

console    chooses by path
explain    which quota applies, and what each layer says
configured the quotas of all layers
changes    sets, removes and returns quotas, with an entry in the audit log
overview   connections, and whether limits are shared
shares     the instances that share limits, and their shares of each limit in use
"""
