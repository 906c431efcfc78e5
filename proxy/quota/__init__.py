"""The rules of quotas: the limits of clients, the measurement of rates, and the reaction to traffic over a
limit.
"""
