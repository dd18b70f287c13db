"""What a configuration will need and do, before it is launched: memory, speed, effects, risk.

`predictor.predict` answers for one configuration, `effects.effects` for a change, `risk.risk_of` for its
danger, `learn.calibrate` learns from earlier launches on the host. Unknown machines and models are answers,
not errors.
"""
