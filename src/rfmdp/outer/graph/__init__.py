"""What is decided without numbers, by which moves are possible.

graph       what can, must and cannot happen in the game of agent and nature
components  strongly connected components, end components
region      the open part of a problem, and what is known of the rest
"""
