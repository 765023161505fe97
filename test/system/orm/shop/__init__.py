"""The application of django_app.py."""
